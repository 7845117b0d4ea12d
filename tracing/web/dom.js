// Small helpers for elements and colours. Texts of a trace are never parsed as HTML.

/** An element with attributes; handlers are functions, children are elements or texts. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (name === 'style') Object.assign(element.style, value)
    else if (value === true) element.setAttribute(name, '')
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value)
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined))
  return element
}

export const byId = (id) => document.getElementById(id)

const NAMES = [
  'ground',
  'card',
  'ink',
  'quiet',
  'line',
  'accent',
  'log',
  'good',
  'bad',
  'warning',
  'special',
  'busy',
  'chosen',
]
let known = null

/** The colours of the current theme. */
export function colours() {
  if (!known) {
    const probe = document.body.appendChild(document.createElement('i'))
    const colour = (name) => {
      probe.style.color = `var(--${name})`
      return getComputedStyle(probe).color
    }
    known = Object.fromEntries(NAMES.map((name) => [name, colour(name)]))
    known.bands = [1, 2, 3, 4, 5, 6].map((n) => colour(`band-${n}`))
    probe.remove()
  }
  return known
}

export function forgetColours() {
  known = null
}

/** The colour of a broker, the same in every picture. */
export function brokerColour(broker) {
  const { bands, line } = colours()
  return broker === null || broker === undefined ? line : bands[(Number(broker) - 1) % bands.length]
}

/** A canvas made sharp for its element; drawing is in CSS pixels. */
export function sharpen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1
  const wide = Math.round(width * ratio),
    high = Math.round(height * ratio)
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide
    canvas.height = high
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  const context = canvas.getContext('2d')
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  return context
}

/** Yields to the page's event loop. */
export function breath() {
  return new Promise((resolve) => setTimeout(resolve))
}

export function notice(text, isBad = false) {
  const line = byId('notice')
  line.textContent = text
  line.className = isBad ? 'bad shown' : 'shown'
  clearTimeout(line.timer)
  line.timer = setTimeout(() => line.classList.remove('shown'), isBad ? 8000 : 3000)
}

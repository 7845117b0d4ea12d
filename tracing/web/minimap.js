// The whole run in one strip: density of events, leaders of partitions, faults, the chosen event.

import { brokerColour, colours, sharpen } from './dom.js'
import { formatTime } from './text.js'

const BUSY_PX = 18
const BANDS_MAX = 6
const BAND_PX = 6
/** Stands for the leader of a partition whose topic is deleted or being deleted. */
const DELETED = -1
const MARK_COLOURS = {
  crash: 'bad',
  fault: 'bad',
  expire: 'warning',
  restart: 'good',
  step: 'special',
}

export class Minimap {
  constructor(box, app) {
    this.box = box
    this.app = app
    this.canvas = document.createElement('canvas')
    box.append(this.canvas)
    new ResizeObserver(() => this.draw()).observe(box)
    box.addEventListener('pointerdown', (event) => {
      box.setPointerCapture(event.pointerId)
      this.go(event)
    })
    box.addEventListener('pointermove', (event) => {
      if (event.buttons) this.go(event)
      else this.hover(event)
    })
  }

  get startUs() {
    return this.app.store.chunks[0]?.from_us ?? 0
  }

  get spanUs() {
    return Math.max((this.app.store.chunks.at(-1)?.to_us ?? 0) - this.startUs, 1)
  }

  x(timeUs) {
    return ((timeUs - this.startUs) / this.spanUs) * (this.width - 2) + 1
  }

  timeAt(x) {
    return (
      this.startUs + (Math.min(Math.max(x - 1, 0), this.width) / (this.width - 2)) * this.spanUs
    )
  }

  go(event) {
    this.app.goToTime(this.timeAt(event.offsetX))
  }

  /** Describes what is below the pointer in the box's title. */
  hover(event) {
    const at = this.timeAt(event.offsetX)
    const reach = (this.spanUs / this.width) * 4
    const mark = this.app.overview.marks.find(
      ([, us, kind]) => kind in MARK_COLOURS && Math.abs(us - at) < reach,
    )
    const band = this.bandAt(event.offsetY, at)
    const words = [
      `${formatTime(Math.round(at))} s`,
      mark && `${mark[2]}: ${mark[4] || mark[3]}`,
      band,
    ]
    this.box.title = words.filter(Boolean).join('\n')
  }

  bandAt(y, at) {
    const index = Math.floor((y - BUSY_PX) / BAND_PX)
    const [name, bands] = this.names[index]
      ? [this.names[index], this.bands(this.names[index])]
      : []
    if (!bands) return null
    const band = bands.findLast(([, us]) => us <= at)
    if (band?.[2] === DELETED) return `${name}: deleted`
    return `${name}: ${band && band[2] !== null ? `leader ${band[2]}` : 'no leader'}`
  }

  bands(name) {
    return this.app.overview.bands[name]
  }

  get names() {
    return Object.keys(this.app.overview.bands).slice(0, BANDS_MAX)
  }

  draw() {
    const { store, overview, chosen } = this.app
    if (!overview || !store.chunks.length) return
    this.width = this.box.clientWidth
    const height = BUSY_PX + Math.max(this.names.length, 1) * BAND_PX + 6
    this.box.style.height = `${height}px`
    const context = sharpen(this.canvas, this.width, height)
    this.drawBusy(context)
    this.drawBands(context)
    this.drawMarks(context, height)
    if (chosen) {
      const x = this.x(chosen.timeUs)
      context.fillStyle = colours().chosen
      context.fillRect(x - 1, 0, 2, height)
      context.beginPath()
      context.moveTo(x - 5, 0)
      context.lineTo(x + 5, 0)
      context.lineTo(x, 7)
      context.fill()
    }
    this.box.setAttribute('aria-valuemin', '0')
    this.box.setAttribute('aria-valuemax', String(store.length - 1))
    this.box.setAttribute('aria-valuenow', String(this.app.place))
  }

  drawBusy(context) {
    const density = new Float64Array(Math.max(this.width, 1))
    for (const chunk of this.app.store.chunks) {
      const from = Math.floor(this.x(chunk.from_us)),
        to = Math.ceil(this.x(chunk.to_us))
      const each = chunk.events / Math.max(to - from, 1)
      for (let x = from; x < Math.max(to, from + 1); x++) if (x < this.width) density[x] += each
    }
    const sorted = Float64Array.from(density).sort()
    const usual = Math.max(sorted[Math.floor(sorted.length * 0.97)], 1)
    context.fillStyle = colours().log
    for (const [x, events] of density.entries()) {
      const high = Math.min(events / usual, 1) * (BUSY_PX - 4)
      context.fillRect(x, BUSY_PX - 2 - high, 1, high)
    }
  }

  drawBands(context) {
    for (const [i, name] of this.names.entries()) {
      const bands = this.bands(name)
      for (const [j, [, us, leader]] of bands.entries()) {
        const from = this.x(us),
          to = j + 1 < bands.length ? this.x(bands[j + 1][1]) : this.width - 1
        if (leader === DELETED) continue
        if (leader === null) {
          context.fillStyle = colours().bad
          context.fillRect(from, BUSY_PX + i * BAND_PX + 2, to - from, 1)
        } else {
          context.fillStyle = brokerColour(leader)
          context.fillRect(from, BUSY_PX + i * BAND_PX, to - from, BAND_PX - 1)
        }
      }
    }
  }

  drawMarks(context, height) {
    let before = -9
    for (const [, us, kind] of this.app.overview.marks) {
      const colour = MARK_COLOURS[kind]
      if (!colour) continue
      const x = Math.round(this.x(us)) + 0.5
      if (kind === 'step' && x - before < 3) continue
      before = x
      context.strokeStyle = colours()[colour]
      context.lineWidth = kind === 'step' ? 1 : 1.5
      context.setLineDash(kind === 'step' ? [1, 3] : [])
      context.beginPath()
      context.moveTo(x, 0)
      context.lineTo(x, kind === 'step' ? BUSY_PX : height)
      context.stroke()
      context.setLineDash([])
    }
  }
}

// The keyboard shortcuts, and the table that explains them.

import { byId, el } from './dom.js'

const KEYS = [
  ['← →', 'previous, next event'],
  [', .', 'previous, next event on this lane'],
  ['[ ]', 'previous, next fault, crash, restart, expiry'],
  ['c', 'cause'],
  ['e', 'first effect'],
  ['w', 'last change of what this event changed'],
  ['/', 'filter'],
  ['f  n  N', 'find, next, previous'],
  ['g', 'go to #1234 or 9.5s'],
  ['space', 'play'],
  ['t', 'space by time or by order'],
  ['+ −', 'wider, narrower time'],
  ['h', 'dim what is concurrent'],
  ['u', 'only what changed'],
  ['1 2 3 4', 'event, why, effects, state'],
  ['b  r', 'write a breakpoint, run to it (live)'],
  ['y', 'copy the command that repeats the run'],
  ['Esc', 'without filter'],
  ['?', 'this help'],
]

/** Shows the table of keyboard shortcuts. */
export function showKeys() {
  const rows = KEYS.map(([key, what]) =>
    el('tr', {}, el('th', { scope: 'row' }, key), el('td', {}, what)),
  )
  const close = el('button', { click: () => byId('keys').close() }, 'close')
  byId('keys').replaceChildren(el('h2', {}, 'Keys'), el('table', {}, el('tbody', {}, rows)), close)
  byId('keys').showModal()
}

/** Performs the action of a keyboard event. */
export function handleKey(app, event) {
  if (event.key === 'Escape') {
    if (app.filterText) app.setFilter('')
    document.activeElement?.blur()
    return
  }
  const isTyping = event.target.closest?.('input, select, textarea, dialog')
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  const isButton = event.target.closest?.('button, summary')
  if (isButton && (event.key === ' ' || event.key === 'Enter')) return
  const actions = {
    b: () => byId('breakpoint')?.focus(),
    r: () => app.live?.run(),
    ArrowLeft: () => app.move(-1),
    ArrowRight: () => app.move(1),
    ArrowUp: () => app.move(-1),
    ArrowDown: () => app.move(1),
    PageUp: () => app.move(-20),
    PageDown: () => app.move(20),
    Home: () => app.choose(0, { isRow: Boolean(app.pairs) }),
    End: () => app.choose((app.pairs ?? app.store).length - 1, { isRow: Boolean(app.pairs) }),
    ',': () => app.seekLane(-1),
    '.': () => app.seekLane(1),
    '[': () => app.seekMark(-1),
    ']': () => app.seekMark(1),
    c: () => app.goToCause(),
    e: () => app.goToEffect(),
    w: () => app.goToLastChange(),
    '/': () => byId('filter').focus(),
    f: () => byId('search').focus(),
    n: () => app.find(1),
    N: () => app.find(-1),
    g: () => app.askWhere(),
    ' ': () => app.play(),
    t: () => app.setTimed(!app.isTimed),
    '+': () => app.list.zoom(1.5),
    '-': () => app.list.zoom(1 / 1.5),
    h: () => app.toggleOrder(),
    y: () => app.copy(),
    '?': () => showKeys(),
    u: () => {
      app.panels.showsOnlyChanged = !app.panels.showsOnlyChanged
      app.panels.show()
    },
  }
  for (let i = 0; i < 4; i++)
    actions[String(i + 1)] = () => {
      app.panels.open(i)
      app.writeAddress()
    }
  if (!Object.hasOwn(actions, event.key) || !app.chosen) return
  event.preventDefault()
  actions[event.key]()
}

// Keeps the page up to date: reads the cluster's state after every event, and once a second.

import { acls } from './acls.js'
import { brokers } from './brokers.js'
import { followEvents, get, send } from './control.js'
import { h, show } from './dom.js'
import { events, timeline } from './events.js'
import { faults } from './faults.js'
import { groups, transactions } from './groups.js'
import { Records, recordsOf } from './records.js'
import { topics } from './topics.js'

const GUIDE = 'https://fakekafka.github.io/fakekafka/reference/control-api/#the-page'
const READ_MS = 1000
const AFTER_EVENT_MS = 60
const KEPT = 500
const NOTICE_MS = 6000
const ARMED_MS = 500
const MOVED_PX = 4
const CONFIRM_MS = 5000

const now = {
  state: null,
  groups: [],
  transactions: [],
  acls: { has_authorizer: false, acls: [] },
  events: [],
  isConnected: false,
  notices: [],
  busy: new Set(),
  armed: null,
}
const section = (id) => document.getElementById(id)
const noticeIds = { last: 0 }

// -- actions -------------------------------------------------------------------------------------

/**
 * Describes a button that sends a request to the control API, and ignores presses until it is
 * answered. With `confirm` the button must be pressed a second time to confirm.
 */
function button(text, label, method, path, { body = {}, kind = '', confirm = false } = {}) {
  const press = () => {
    if (confirm && now.armed !== label) arm(label)
    else act(label, method, path, body)
  }
  return h(
    'button',
    {
      key: label,
      type: 'button',
      class: kind,
      'aria-label': label,
      'aria-busy': now.busy.has(label) ? 'true' : null,
      onclick: (event) => isSecondClick(event) || press(),
    },
    now.armed === label ? `${text}: sure?` : text,
  )
}

/** Lets the next press of a button confirm its action, for a few seconds. */
function arm(label) {
  now.armed = label
  draw()
  setTimeout(() => {
    if (now.armed === label) disarm()
  }, CONFIRM_MS)
}

function disarm() {
  now.armed = null
  draw()
}

const pressed = { at: 0, x: 0, y: 0, isThere: false }

/**
 * Returns whether a click belongs to a double click, whose second click may hit a new button: after
 * Kill is pressed, Start appears in its place. A click counts if the pointer has moved since the
 * last one, or if the last click and the button's appearance are at least ARMED_MS ago.
 */
function isSecondClick(event) {
  if (event.detail === 0) return false // the keyboard
  const at = performance.now()
  const since = at - Math.max(pressed.at, event.currentTarget.shownAt)
  const isSecond = pressed.isThere && since < ARMED_MS
  Object.assign(pressed, { at, x: event.clientX, y: event.clientY, isThere: true })
  return isSecond
}

addEventListener('pointermove', ({ clientX, clientY }) => {
  if (Math.hypot(clientX - pressed.x, clientY - pressed.y) > MOVED_PX) pressed.isThere = false
})

// A key that is held down would press whichever button has the focus by then.
addEventListener('keydown', (event) => {
  if (event.repeat && event.target.matches('button')) event.preventDefault()
})

async function act(label, method, path, body, then = () => {}) {
  if (now.busy.has(label)) return
  now.busy.add(label)
  now.armed = null
  draw()
  try {
    const value = await send(method, path, body)
    notify(label, refusals(value) ?? 'done')
    then()
  } catch (error) {
    notify(label, error.message, true)
  } finally {
    now.busy.delete(label)
    readState()
  }
}

/** Returns the errors of the partitions that an election refused; null if there are none. */
function refusals(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null
  const failed = Object.entries(value).filter(
    ([, error]) => typeof error === 'string' && !['NONE', 'ELECTION_NOT_NEEDED'].includes(error),
  )
  return failed.length
    ? failed.map(([partition, error]) => `${partition}: ${error}`).join(', ')
    : null
}

function notify(label, text, isError = false) {
  noticeIds.last += 1
  const notice = { id: noticeIds.last, text: `${label}: ${text}`, isError }
  now.notices = [...now.notices.slice(-3), notice]
  drawNotices()
  setTimeout(() => {
    now.notices = now.notices.filter((one) => one !== notice)
    drawNotices()
  }, NOTICE_MS)
}

// -- reading the state ---------------------------------------------------------------------------

const reading = { isRunning: false, isRepeated: false, timer: null, pauseMs: READ_MS }

/** Reads the state now; a call during a read makes it read once more. */
async function readState() {
  if (reading.isRunning) {
    reading.isRepeated = true
    return
  }
  clearTimeout(reading.timer)
  reading.isRunning = true
  reading.isRepeated = false
  const began = performance.now()
  try {
    now.state = await get('/state')
    records.follow(now.state)
  } catch {
    now.isConnected = false
  }
  reading.isRunning = false
  draw()
  // With many partitions a read takes longer; the pause grows to leave the cluster time.
  reading.pauseMs = Math.max(READ_MS, 5 * (performance.now() - began))
  scheduleRead(reading.isRepeated ? AFTER_EVENT_MS : reading.pauseMs)
}

function scheduleRead(delayMs) {
  clearTimeout(reading.timer)
  reading.timer = setTimeout(() => (document.hidden ? scheduleRead(READ_MS) : readState()), delayMs)
}

/** Reads groups, transactions and ACLs, for which a broker that is cut off causes a delay. */
async function readCoordinators() {
  const began = performance.now()
  if (!document.hidden) {
    try {
      now.groups = await get('/groups')
      now.transactions = await get('/transactions')
      now.acls = await get('/acls')
      draw()
    } catch {
      // The next read may succeed; the header shows when there is no connection.
    }
  }
  setTimeout(readCoordinators, Math.max(READ_MS, 5 * (performance.now() - began)))
}

// -- drawing -------------------------------------------------------------------------------------

const records = new Records(() => draw())

const view = {
  filter: '',
  open: new Map(),
  openRecords(topic, partition) {
    records.open(topic, partition)
    section('records').scrollIntoView({ block: 'start' })
    section('records').focus({ preventScroll: true })
  },
  setFilter(text) {
    view.filter = text
    draw()
  },
  toggle(topic, isOpen) {
    if (view.open.get(topic) === isOpen) return
    view.open.set(topic, isOpen)
    draw()
  },
}

function health(state) {
  if (!now.isConnected) return ['bad', 'not connected']
  if (state.controller.id === null) return ['bad', 'no controller']
  const partitions = Object.values(state.topics).flat()
  if (partitions.some((partition) => partition.leader === null))
    return ['bad', 'partitions are offline']
  if (partitions.some((partition) => partition.isr.length < partition.replicas.length))
    return ['warning', 'under-replicated']
  return state.is_settled ? ['good', 'all in sync'] : ['busy', 'settling']
}

function memory({ kept_bytes: kept, bytes_max: most }) {
  const megabytes = (bytes) => Math.round(bytes / 2 ** 20).toLocaleString('en')
  return `records: ${megabytes(kept)} of ${megabytes(most)} MB`
}

function header(state) {
  const [kind, text] = health(state)
  return [
    h(
      'div',
      { key: 'names', class: 'names' },
      h('h1', {}, 'fakekafka'),
      h('span', { class: 'quiet' }, `Kafka ${state.kafka_version}`),
      h('span', { class: `badge ${kind}`, id: 'health' }, text),
    ),
    h(
      'div',
      { key: 'addresses', class: 'addresses' },
      h(
        'span',
        {},
        state.controller.id === null
          ? 'no controller'
          : `controller: broker ${state.controller.id}, epoch ${state.controller.epoch}`,
      ),
      h('code', { title: 'bootstrap.servers' }, state.bootstrap_servers),
      state.memory === null ? null : h('span', { id: 'memory' }, memory(state.memory)),
    ),
    h(
      'nav',
      { key: 'links', class: 'links' },
      h('a', { href: '/api' }, 'API'),
      h('a', { href: GUIDE, rel: 'noreferrer' }, 'Guide'),
    ),
    h(
      'button',
      {
        key: 'theme',
        type: 'button',
        class: 'theme',
        'aria-label': 'Change between light and dark',
        onclick: changeTheme,
      },
      theme() === 'dark' ? 'Light' : 'Dark',
    ),
  ]
}

function draw() {
  const { state } = now
  if (state === null) {
    show(
      section('header'),
      h('h1', {}, 'fakekafka'),
      h('p', { class: 'quiet' }, 'Waiting for the control API…'),
    )
    return
  }
  const focused = document.activeElement
  const home = focused?.closest('li, tr, section')
  show(section('header'), header(state))
  show(section('brokers'), brokers(state, button))
  show(section('faults'), faults(state, button))
  show(section('timeline'), timeline(now.events))
  show(section('topics'), topics(state, view, button, act))
  show(section('records'), recordsOf(records, state, act))
  section('records').hidden = records.topic === null
  show(section('groups'), groups(now.groups, button))
  show(section('transactions'), transactions(now.transactions))
  show(section('acls'), acls(now.acls))
  show(section('events'), events(now.events))
  // A pressed button may have been replaced by another, such as Kill by Start.
  if (focused && !focused.isConnected && home?.isConnected) home.querySelector('button')?.focus()
}

function drawNotices() {
  show(
    section('notices'),
    now.notices.map((one) =>
      h('p', { key: one.id, class: one.isError ? 'bad' : 'good' }, one.text),
    ),
  )
}

// -- light and dark ------------------------------------------------------------------------------

function theme() {
  const chosen = document.documentElement.dataset.theme
  return chosen ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
}

function changeTheme() {
  const chosen = theme() === 'dark' ? 'light' : 'dark'
  document.documentElement.dataset.theme = chosen
  localStorage.setItem('fakekafka-theme', chosen)
  draw()
}

const remembered = localStorage.getItem('fakekafka-theme')
if (remembered === 'dark' || remembered === 'light')
  document.documentElement.dataset.theme = remembered
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)

draw()
followEvents({
  onEvent(event) {
    now.events = [...now.events.slice(1 - KEPT), event]
    if (reading.isRunning) reading.isRepeated = true
    else scheduleRead(AFTER_EVENT_MS)
  },
  onConnection(isConnected) {
    now.isConnected = isConnected
    readState()
  },
  onRestart() {
    now.events = []
  },
})
readCoordinators()
document.addEventListener('visibilitychange', () => document.hidden || readState())

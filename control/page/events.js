// The events: a line for each, newest first, and a timeline of elections and ISR changes.

import { h, heading } from './dom.js'

const SHOWN_MAX = 200
const SPANS_S = [60, 300, 1800, 7200, 43200]
const LANES = [
  ['election', 'elections'],
  ['isr', 'ISR'],
  ['broker', 'brokers'],
  ['controller', 'controller'],
]
const time = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

/** Describes the section of the newest events. */
export function events(kept) {
  const shown = kept.slice(-SHOWN_MAX).reverse()
  const line = (event, index) =>
    h(
      'li',
      { key: event.id ?? `lost ${index}`, 'data-type': event.type },
      h('time', {}, event.at_ms === undefined ? '' : time.format(event.at_ms)),
      h('span', { class: 'kind' }, event.type),
      h('span', { class: 'text' }, event.text ?? event.type),
    )
  return [
    heading('Events', undefined),
    shown.length
      ? h(
          'ol',
          {
            key: 'events',
            class: 'events',
            tabindex: 0,
            role: 'log',
            'aria-live': 'off',
            'aria-label': 'Events, newest first',
          },
          shown.map(line),
        )
      : h(
          'p',
          { key: 'none', class: 'quiet' },
          'Nothing has happened since the control API began to watch.',
        ),
  ]
}

function ago(seconds) {
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${seconds / 60} min` : `${seconds / 3600} h`
}

function mark(event, from, span) {
  const share = `${(100 * (event.at_ms - from)) / span}%`
  const kind =
    (event.type === 'isr' && event.isr.length < event.was.length) ||
    (event.type === 'broker' && event.state === 'not_running') ||
    event.leader === null
      ? 'worse'
      : 'better'
  return h('i', { key: event.id, class: `mark ${kind}`, style: { left: share }, title: event.text })
}

/** Describes the timeline, over the shortest span of time that covers all kept events. */
export function timeline(kept) {
  const shown = kept.filter((event) => LANES.some(([type]) => type === event.type))
  const now = Date.now()
  const oldest = shown.length ? (now - shown[0].at_ms) / 1000 : 0
  const spanS = SPANS_S.find((seconds) => seconds >= oldest) ?? SPANS_S.at(-1)
  const span = spanS * 1000
  const from = now - span
  const lane = ([type, title]) => {
    const inSpan = shown.filter((event) => event.type === type && event.at_ms >= from)
    return h(
      'div',
      { key: type, class: 'lane', 'data-lane': type },
      h('span', { class: 'quiet' }, title),
      h(
        'div',
        { class: 'track', role: 'img', 'aria-label': `${inSpan.length} ${title} in ${ago(spanS)}` },
        inSpan.map((event) => mark(event, from, span)),
      ),
      h('span', { class: 'quiet count' }, inSpan.length),
    )
  }
  return [
    heading('Time line', `the last ${ago(spanS)}`),
    LANES.map(lane),
    h(
      'div',
      { key: 'scale', class: 'lane scale' },
      h('span', {}, ''),
      h(
        'div',
        { class: 'line quiet' },
        h('span', {}, `${ago(spanS)} ago`),
        h('span', { class: 'end' }, 'now'),
      ),
      h('span', {}, ''),
    ),
  ]
}

// What happened, newest first.

import { h, heading } from './dom.js'

const SHOWN_MAX = 200
const time = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

function who(broker) {
  return broker === null ? 'nobody' : `broker ${broker}`
}

/** An event in words. */
export function told(event) {
  const partition = `${event.topic}-${event.partition}`
  switch (event.type) {
    case 'election':
      return (
        `${partition}: ${who(event.leader)} leads in epoch ${event.leader_epoch}, ` +
        `after ${who(event.was)}`
      )
    case 'isr':
      return `${partition}: ISR [${event.isr.join(', ')}], was [${event.was.join(', ')}]`
    case 'broker':
      return `broker ${event.broker}: ${event.state.replaceAll('_', ' ')}`
    case 'zookeeper':
      return `ZooKeeper ${event.server}: ${event.state.replaceAll('_', ' ')}`
    case 'controller':
      return event.broker === null
        ? 'no controller'
        : `broker ${event.broker} is the controller, epoch ${event.epoch}`
    case 'topic':
      return event.change === 'created'
        ? `new partitions of ${event.topic}: ${event.partitions}`
        : `topic ${event.topic} is deleted`
    case 'action':
      return `${event.method} ${event.path}`
    case 'lost':
      return `${event.count} events were lost: they came faster than this page read`
  }
  return event.type
}

/** The newest events. */
export function events(kept) {
  const shown = kept.slice(-SHOWN_MAX).reverse()
  const line = (event, index) =>
    h(
      'li',
      { key: event.id ?? `lost ${index}`, 'data-type': event.type },
      h('time', {}, event.at_ms === undefined ? '' : time.format(event.at_ms)),
      h('span', { class: 'kind' }, event.type),
      h('span', { class: 'text' }, told(event)),
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

// The topics: every partition with its leader, its ISR, and the log of each replica.

import { h, heading, table } from './dom.js'

const NEW = { name: 'Name of the new topic', partitions: 'Partitions', replicas: 'Replicas' }

const SHOWN_MAX = 200
const TITLES = ['partition', 'leader', 'epoch', 'ISR', 'replicas', '']

const number = new Intl.NumberFormat('en')

function condition(partition) {
  if (partition.leader === null) return 'offline'
  if (partition.isr.length < partition.replicas.length) return 'under'
  return 'whole'
}

/** Draws the log of a replica as in stories: a bar to its end, a line at its high watermark. */
function replica(topic, partition, id, longest) {
  const offsets = partition.offsets[id]
  const isLeader = partition.leader === id
  const isInSync = partition.isr.includes(id)
  const role = offsets === undefined ? 'off' : isLeader ? 'leader' : 'follower'
  const offsetsText =
    offsets === undefined ? 'does not serve' : `high watermark ${offsets[0]}, log end ${offsets[1]}`
  const share = (offset) => `${longest ? (100 * offset) / longest : 0}%`
  const bar =
    offsets === undefined
      ? h('div', { class: 'log' })
      : h(
          'div',
          { class: 'log' },
          h('div', { class: 'records', style: { width: share(offsets[1]) } }),
          h('div', { class: 'watermark', style: { left: share(offsets[0]) } }),
        )
  const moving = partition.adding.includes(id)
    ? ', being added'
    : partition.removing.includes(id)
      ? ', being removed'
      : ''
  return h(
    'div',
    {
      key: id,
      class: `replica ${role}`,
      title:
        `${topic}-${partition.partition} at broker ${id}: ${role}, ` +
        `${isInSync ? 'in the ISR' : 'not in the ISR'}, ${offsetsText}${moving}`,
    },
    h(
      'div',
      { class: 'line' },
      h('b', {}, `${id}`),
      h('span', { class: 'role' }, role),
      h('span', { class: isInSync ? 'in' : 'out' }, isInSync ? 'in ISR' : 'out of sync'),
      moving ? h('span', { class: 'moving' }, moving.slice(2)) : null,
    ),
    bar,
    h(
      'div',
      { class: 'line offsets' },
      offsets === undefined
        ? 'no offsets'
        : [
            h('span', {}, `HW ${number.format(offsets[0])}`),
            h('span', {}, `LEO ${number.format(offsets[1])}`),
          ],
    ),
  )
}

function row(topic, partition, view, button) {
  const longest = Math.max(0, ...Object.values(partition.offsets).map((pair) => pair[1]))
  const name = `${topic}-${partition.partition}`
  const election = partition.leader === null ? 'unclean' : 'preferred'
  const canElect = partition.leader !== partition.replicas[0]
  const label =
    election === 'unclean'
      ? `Elect a leader of ${name}, in sync or not`
      : `Elect the preferred leader of ${name}`
  const body = { election, partitions: [[topic, partition.partition]] }
  const electButton = canElect
    ? button(election === 'unclean' ? 'Elect unclean' : 'Elect', label, 'POST', '/elect_leaders', {
        body,
      })
    : null
  return h(
    'tr',
    { key: name, class: condition(partition), 'data-partition': name },
    h('th', { scope: 'row', 'data-title': 'partition' }, partition.partition),
    h(
      'td',
      { class: 'leader', 'data-title': 'leader' },
      partition.leader === null
        ? h('span', { class: 'badge bad' }, 'no leader')
        : `${partition.leader}`,
    ),
    h('td', { 'data-title': 'epoch' }, partition.leader_epoch),
    h('td', { class: 'isr', 'data-title': 'ISR' }, partition.isr.join(' ') || '–'),
    h(
      'td',
      { class: 'wide' },
      h(
        'div',
        { class: 'replicas' },
        partition.replicas.map((id) => replica(topic, partition, id, longest)),
      ),
    ),
    h(
      'td',
      {},
      h(
        'div',
        { class: 'actions' },
        h(
          'button',
          {
            key: 'records',
            type: 'button',
            'aria-label': `Look at the records of ${name}`,
            onclick: () => view.openRecords(topic, partition.partition),
          },
          'Records',
        ),
        electButton,
      ),
    ),
  )
}

/** Describes the form that creates a topic. */
function newTopic(act) {
  const field = (label, attributes) =>
    h('input', { key: label, 'aria-label': label, placeholder: label, ...attributes })
  const create = (event) => {
    const section = event.currentTarget.closest('section')
    const value = (label) => section.querySelector(`[aria-label="${label}"]`).value
    const body = { name: value(NEW.name) }
    if (value(NEW.partitions)) body.partitions = Number(value(NEW.partitions))
    if (value(NEW.replicas)) body.replication_factor = Number(value(NEW.replicas))
    act('Create the topic', 'POST', '/topics', body)
  }
  const counted = { inputmode: 'numeric', size: 9 }
  return h(
    'details',
    { key: 'new', class: 'form' },
    h('summary', {}, 'New topic'),
    h(
      'div',
      { class: 'controls' },
      field(NEW.name, { size: 22, onkeydown: (event) => event.key === 'Enter' && create(event) }),
      field(NEW.partitions, counted),
      field(NEW.replicas, counted),
      h(
        'button',
        { type: 'button', class: 'good', 'aria-label': 'Create the topic', onclick: create },
        'Create',
      ),
    ),
  )
}

function topicDetails(topic, partitions, isOpen, view, button) {
  const offline = partitions.filter((p) => p.leader === null).length
  const under = partitions.filter((p) => condition(p) === 'under').length
  const summary = h(
    'summary',
    {},
    h('span', { class: 'name' }, topic),
    h(
      'span',
      { class: 'count' },
      `${partitions.length} ${partitions.length === 1 ? 'partition' : 'partitions'}`,
    ),
    offline ? h('span', { class: 'badge bad' }, `${offline} without a leader`) : null,
    under ? h('span', { class: 'badge warning' }, `${under} under-replicated`) : null,
  )
  const shown = partitions.slice(0, SHOWN_MAX)
  const rest = partitions.length - shown.length
  const at = `/topics/${encodeURIComponent(topic)}`
  return h(
    'details',
    {
      key: `topic ${topic}`,
      class: 'topic',
      'data-topic': topic,
      open: isOpen,
      ontoggle: (event) => view.toggle(topic, event.currentTarget.open),
    },
    summary,
    isOpen
      ? table(
          `Partitions of ${topic}`,
          TITLES,
          shown.map((partition) => row(topic, partition, view, button)),
        )
      : null,
    isOpen && !topic.startsWith('__')
      ? h(
          'div',
          { class: 'actions end' },
          button('Delete', `Delete the topic ${topic}`, 'DELETE', at, {
            kind: 'danger',
            confirm: true,
          }),
        )
      : null,
    isOpen && rest
      ? h('p', { class: 'quiet' }, `and ${number.format(rest)} more: GET /topics/${topic}`)
      : null,
  )
}

/** Describes the topics whose names contain the filter; internal topics come last, closed. */
export function topics(state, view, button, act) {
  const names = Object.keys(state.topics)
  const isInternal = (name) => name.startsWith('__')
  const wanted = names.filter((name) => name.toLowerCase().includes(view.filter.toLowerCase()))
  wanted.sort((one, other) => isInternal(one) - isInternal(other) || (one < other ? -1 : 1))
  const shown = wanted.slice(0, SHOWN_MAX)
  const opens = (name) => view.open.get(name) ?? (!isInternal(name) && names.length <= 20)
  const filter = h('input', {
    type: 'search',
    placeholder: 'filter by name',
    'aria-label': 'Filter topics by name',
    value: view.filter,
    oninput: (event) => view.setFilter(event.currentTarget.value),
  })
  return [
    heading('Topics', number.format(names.length), filter),
    newTopic(act),
    names.length ? null : h('p', { key: 'none', class: 'quiet' }, 'There are no topics yet.'),
    names.length && !wanted.length
      ? h('p', { key: 'unmatched', class: 'quiet' }, 'No topic has this in its name.')
      : null,
    shown.map((name) => topicDetails(name, state.topics[name], opens(name), view, button)),
    wanted.length > shown.length
      ? h(
          'p',
          { key: 'rest', class: 'quiet' },
          `and ${number.format(wanted.length - shown.length)} more topics: filter by name`,
        )
      : null,
  ]
}

// An event as text: its fields by name, its line in the list, its time.

export const ARROWS = {
  send: '→',
  deliver: '←',
  drop: '×',
  hold: '‖',
  release: '→',
  spawn: '+',
  stop: '−',
}
const ROOTS = new Set(['start', 'step', 'fault', 'crash', 'restart'])
// Operations that no application requests: a client begins them in reaction to a message.
const OF_ITS_OWN_ACCORD = new Set(['join_group', 'heartbeat', 'find_coordinator', 'offset_fetch'])

/** Whether a chain of causes ends at an event. */
export function isRoot(event) {
  if (event.kind !== 'client_invoke') return ROOTS.has(event.kind)
  return event.cause === null || !OF_ITS_OWN_ACCORD.has(event.type)
}
export const INTERESTING = new Set(['crash', 'restart', 'fault', 'expire'])
const KEY_FIELDS = {
  ProduceRequest: ['acks', 'transactional_id', 'partitions'],
  FetchRequest: ['replica_id', 'session_epoch', 'partitions'],
  FetchResponse: ['error', 'partitions'],
  LeaderAndIsrRequest: ['controller_epoch', 'partition_states'],
  UpdateMetadataRequest: ['controller_epoch', 'partition_states'],
  StopReplicaRequest: ['controller_epoch', 'partition_states'],
  ClientPacket: ['xid', 'request'],
  ServerPacket: ['xid', 'response'],
  Waited: ['request'],
}
const SHOWN = 3
const WORD_LENGTH = 96

export function formatTime(timeUs) {
  const seconds = Math.floor(timeUs / 1e6)
  return `${seconds}.${String(timeUs % 1e6).padStart(6, '0')}`
}

export function formatCount(number) {
  return number.toLocaleString('en')
}

/** Names the values of a payload by the fields and shapes in the trace's schema. */
export function nameFields(store, type, payload) {
  const fields = Object.hasOwn(store.schema, type) ? store.schema[type] : null
  const named = {}
  for (const [i, value] of payload.entries()) {
    const [name, shape] = fields?.[i] ?? [`field_${i}`, null]
    named[name] = shaped(store, shape, value)
  }
  return named
}

function shaped(store, shape, value) {
  if (shape === null || value === null) return value
  if (shape === '?') return tagged(store, value)
  if (typeof shape === 'string')
    return shape === 'TopicPartition' ? `${value[0]}-${value[1]}` : nameFields(store, shape, value)
  if (shape[0] === '*') return value.map((item) => shaped(store, shape[1], item))
  if (shape[0] === '%') return store.enums[shape[1]]?.[value] ?? value
  return value.map((item, i) => shaped(store, shape[i + 1] ?? null, item))
}

function tagged(store, value) {
  if (Array.isArray(value)) {
    const name = typeof value[0] === 'string' && value[0][0] === '@' ? value[0].slice(1) : null
    if (name !== null && Object.hasOwn(store.schema, name)) {
      if (name === 'TopicPartition') return `${value[1]}-${value[2]}`
      return { '@type': name, ...nameFields(store, name, value.slice(1)) }
    }
    return value.map((item) => tagged(store, item))
  }
  if (value !== null && typeof value === 'object')
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, tagged(store, item)]),
    )
  return value
}

function isEmpty(value, name) {
  if (name === 'leader' || name === 'acks') return value === null || value === undefined
  if (value === null || value === undefined || value === '' || value === -1) return true
  if (value === false || value === 'NONE' || value === 'OK') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** A value as a short text. */
export function word(value) {
  let text
  if (Array.isArray(value)) {
    const more = value.length > SHOWN && typeof value[0] === 'object' ? SHOWN : value.length
    text = `[${value.slice(0, more).map(word).join(', ')}`
    text += more < value.length ? ` +${value.length - more} more]` : ']'
  } else if (value !== null && typeof value === 'object') {
    text =
      'head' in value && 'length' in value ? `${value.head}..(${value.length} bytes)` : entry(value)
  } else if (value === null || value === undefined) text = '–'
  else text = String(value)
  return text.length <= WORD_LENGTH ? text : text.slice(0, WORD_LENGTH - 2) + '..'
}

function entry(item) {
  let label = item['@type'] ?? ''
  let hidden = ['@type', 'stat']
  if ('topic_partition' in item) {
    label = item.topic_partition
    hidden = ['topic_partition']
  } else if ('topic' in item && 'partition' in item) {
    label = `${item.topic}-${item.partition}`
    hidden = ['topic', 'partition']
  } else if ('base_offset' in item && 'last_offset' in item) {
    return `${item.base_offset}..${item.last_offset}`
  }
  const words = []
  for (const [name, value] of Object.entries(item))
    if (!hidden.includes(name) && !isEmpty(value, name)) words.push(`${name}=${word(value)}`)
  return words.length ? `${label}(${words.join(' ')})` : label
}

/** The most telling fields of an event, on one line. */
export function summary(event) {
  if (event.line !== undefined) return event.line
  const words = []
  const fields = event.fields
  for (const name of KEY_FIELDS[event.type] ?? Object.keys(fields)) {
    const value = fields[name]
    if (isEmpty(value, name)) continue
    const isPlain = ['partitions', 'partition_states', 'topics', 'request', 'response']
    words.push(isPlain.includes(name) ? word(value) : `${name}=${word(value)}`)
  }
  if (event.why) words.push(`(${event.why})`)
  if (event.kind === 'state')
    for (const [path, old, now] of event.delta) words.push(`${path}: ${word(old)} → ${word(now)}`)
  event.line = words.join(' ')
  return event.line
}

/** The name of an actor without the prefix of a workload's clients. */
export function shortActor(name) {
  return name.replace(/^workload-1-/, '')
}

/** The actor of an event and its peer. */
export function whoText(event) {
  const peer = event.peer ? ` ${ARROWS[event.kind] ?? '·'} ${shortActor(event.peer)}` : ''
  return shortActor(event.actor) + peer
}

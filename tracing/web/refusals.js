// Finds the cause of an error answer: the state because of which the broker refused the request.
// As in tracing/reading/refusals.py, which says more.

const ERROR_CAUSE_PATHS = {
  NOT_ENOUGH_REPLICAS: '{broker}/{partition}/isr',
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: '{broker}/{partition}/isr',
  NOT_LEADER_OR_FOLLOWER: '{broker}/{partition}/role',
  FENCED_LEADER_EPOCH: '{broker}/{partition}/leader_epoch',
  UNKNOWN_LEADER_EPOCH: '{broker}/{partition}/leader_epoch',
  OFFSET_OUT_OF_RANGE: '{broker}/{partition}/log_end_offset',
  PREFERRED_LEADER_NOT_AVAILABLE: 'controller-*/{partition}/replica-*/state',
  ELIGIBLE_LEADERS_NOT_AVAILABLE: 'controller-*/{partition}/state',
  PRODUCER_FENCED: '{broker}/transaction/{id}',
  INVALID_PRODUCER_EPOCH: '{broker}/transaction/{id}',
  INVALID_TXN_STATE: '{broker}/transaction/{id}',
  UNKNOWN_MEMBER_ID: '{broker}/groups/{id}/members',
  ILLEGAL_GENERATION: '{broker}/groups/{id}/generation',
  REBALANCE_IN_PROGRESS: '{broker}/groups/{id}/state',
}
const STALE_CONTROLLER = 'STALE_CONTROLLER_EPOCH'
const LOOKED_BACK = 20_000

function* errorsOf(value, depth = 0) {
  if (depth > 3 || value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    const [where, error] = value
    if (value.length > 1 && typeof where === 'string' && Object.hasOwn(ERROR_CAUSE_PATHS, error))
      yield [error, where]
  } else if (typeof value.error === 'string' && value.error !== 'NONE')
    yield [value.error, String(value.topic_partition ?? '')]
  for (const item of Object.values(value)) yield* errorsOf(item, depth + 1)
}

/** The event because of which a request was answered with an error; null if unknown. */
export async function decidedBy(store, answer, request) {
  for (const [error, partition] of errorsOf(answer.fields)) {
    if (error === STALE_CONTROLLER) return newerController(store, request)
    const path = Object.hasOwn(ERROR_CAUSE_PATHS, error) ? ERROR_CAUSE_PATHS[error] : null
    if (path === null || (path.includes('{partition}') && !partition)) continue
    const id = request.fields.transactional_id || request.fields.group_id || ''
    const named = { broker: request.actor, partition, id }
    const change = await lastMatching(
      store,
      path.replace(/{(\w+)}/g, (_, name) => named[name]),
      answer,
    )
    if (change && change.event.seq < answer.seq) return change.event
  }
  return null
}

async function lastMatching(store, pattern, answer) {
  if (!pattern.includes('*')) return store.lastChange(pattern, answer.seq)
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const form = new RegExp(`^${parts.join('.*')}$`)
  let found = null
  for (const path of store.strings.filter((text) => form.test(text))) {
    const change = await store.lastChange(path, answer.seq)
    if (change && (!found || change.event.seq > found.event.seq)) found = change
  }
  return found
}

/** The first message with a greater controller epoch that reached the same broker. */
async function newerController(store, request) {
  const own = request.epochs?.[0] ?? null
  if (own === null) return null
  const first = Math.max(request.seq - LOOKED_BACK, 0)
  const { actor } = request
  for (let index = store.chunkOfSeq(first); index <= store.chunkOfSeq(request.seq); index++) {
    if (!store.mayHold(index, { actor, kind: 'deliver' })) continue
    for (const event of await store.chunk(index)) {
      if (event.seq < first || event.kind !== 'deliver' || event.actor !== actor) continue
      if (event.seq >= request.seq) return null
      if ((event.epochs?.[0] ?? own) > own) return event
    }
  }
  return null
}

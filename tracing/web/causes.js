// Cause and effect: the chain that led to an event, its effects, and what happened before it.
// As in tracing/reading/causes.py, which says more.

import { decidedBy } from './refusals.js'
import { isRoot } from './text.js'
import { isAsked, requestsThatWaited, topicsFound, waitedInTurn } from './waits.js'

const ANSWER_MAX = 4
const ANSWER_OF_ZOOKEEPER = 'ServerPacket'

const HOPS_MAX = 4000
const HOPS_SEARCHED_MAX = 200
const OF_CLIENTS = ['ProduceRequest', 'FetchRequest']
const PARTITIONS_MAX = 20
const RELEASE_MAX = 4000
const REPEATED = ['timer_fire', 'client_retry', 'client_invoke']
const BOOKKEEPING = ['/queue', '/queue_length', '/event']
const ROUND_TRIP_MAX = 64
const WAIT_US = 1000
const EFFECTS_MAX = 300
const EFFECT_CHUNKS_MAX = 60

async function parentOf(store, event) {
  if (event.cause === null || event.cause >= event.seq || isRoot(event)) return null
  return (await releasedBy(store, event)) ?? store.bySeq(event.cause)
}

/** The release of an arriving message that was held by a cut link, a pause or a rule. */
async function releasedBy(store, event) {
  if (event.kind !== 'deliver' || event.message === null) return null
  const first = Math.max(event.cause + 1, event.seq - RELEASE_MAX)
  for (let index = store.chunkOfSeq(event.seq); index >= 0; index--) {
    if (store.chunks[index].last < first) break
    if (!store.mayHold(index, { kind: 'release' })) continue
    const found = (await store.chunk(index)).findLast(
      (other) =>
        other.kind === 'release' &&
        other.message === event.message &&
        other.seq >= first &&
        other.seq < event.seq,
    )
    if (found) return found
  }
  return null
}

async function chainOf(store, event) {
  const chain = [event]
  while (chain.length <= HOPS_MAX) {
    const parent = await parentOf(store, chain.at(-1))
    if (!parent) break
    chain.push(parent)
  }
  return chain
}

/** The event that made a broker the leader, if an event is its first append as such. */
async function enabledBy(store, event) {
  for (const [path, old] of event.delta) {
    if (!path.endsWith('/log_end_offset') || old === null) continue
    const led = await ledSince(store, path.replace(/\/log_end_offset$/, ''), event)
    if (!led) continue
    const before = await store.lastChange(path, event.seq - 1)
    if (!before || before.event.seq <= led.seq) return led
  }
  return null
}

/** The event that made a broker the leader it is at an event; null if it is none. */
async function ledSince(store, partition, event) {
  const role = await store.lastChange(`${partition}/role`, event.seq)
  if (!role || role.now !== 'leader' || role.event.seq === event.seq) return null
  return role.event
}

/** The event that made a replica a follower, for the fetch with which it joins the ISR; null if the
 *  ISR changed after it. */
async function joinedSince(store, event) {
  if (event.type !== 'FetchRequest') return null
  for (const [path, , now] of event.delta) {
    if (!path.endsWith('/proposed_isr') || !now) continue
    const partition = path.replace(/\/proposed_isr$/, '')
    const topicPartition = partition.slice(partition.indexOf('/') + 1)
    const before = await store.lastChange(`${partition}/isr`, event.seq)
    const follower = `broker-${event.fields.replica_id}/${topicPartition}/role`
    const role = await store.lastChange(follower, event.seq)
    if (before && role?.now === 'follower' && role.event.seq > before.event.seq) return role.event
  }
  return null
}

/** The event that made a broker the leader, for a client's request to that broker; null if that was
 *  not after the event `since`. */
async function waitedFor(store, event, since) {
  if (event.kind !== 'deliver' || !OF_CLIENTS.includes(event.type)) return null
  const { replica_id: replica = -1, partitions } = event.fields
  if (replica >= 0 || !Array.isArray(partitions)) return null
  for (const partition of partitions.slice(0, PARTITIONS_MAX)) {
    const name = partition?.topic_partition
    if (!name) continue
    const led = await ledSince(store, `${event.actor}/${name}`, event)
    if (led && led.seq > since) return led
  }
  return null
}

/** Index after the sending of the request that a delivery answers; null if it is not an answer. */
function askedAt(chain, index) {
  const event = chain[index]
  if (event.kind !== 'deliver' || event.peer === event.actor || isAsked(event)) return null
  const end = Math.min(index + ROUND_TRIP_MAX, chain.length - 1)
  for (let later = index + 1; later < end; later++) {
    const other = chain[later]
    if (isRoot(other) || other.kind === 'expire') return null
    if (other.actor === event.actor)
      return other.kind === 'send' && other.peer === event.peer ? later + 1 : null
  }
  return null
}

function matters(chain, index, back) {
  const event = chain[index]
  if (event.kind === 'deliver') return back === null && event.peer !== event.actor
  if (event.kind === 'timer_fire') return event.timeUs - chain[index + 1].timeUs >= WAIT_US
  return !['send', 'hold', 'state'].includes(event.kind)
}

/** Whether a timer fired or a client tried again later in the chain: the last time is enough. */
function isRepeated(kept, event) {
  if (!REPEATED.includes(event.kind)) return false
  return kept
    .slice(-2)
    .some(
      (later) =>
        later.kind === event.kind && later.actor === event.actor && later.type === event.type,
    )
}

/** Whether an event changed more than the controller's queue. */
function changesSomething(event) {
  const isNews = ([path]) => !BOOKKEEPING.some((end) => path.endsWith(end))
  return event.hasDelta && event.delta.some(isNews)
}

/** The chain without sendings, answered requests, waits for a turn in a queue, and all but the last
 *  of repeated attempts. */
function fold(chain) {
  const kept = [chain[0]]
  let index = 1
  const isAnswer = chain[0].type === ANSWER_OF_ZOOKEEPER || !changesSomething(chain[0])
  if (chain[0].kind === 'deliver' && isAnswer) index = askedAt(chain, 0) ?? 1
  while (index < chain.length - 1) {
    const back = askedAt(chain, index)
    const event = chain[index]
    const isNews = matters(chain, index, back) && !isRepeated(kept, event)
    if (changesSomething(event) || isNews) kept.push(event)
    index = back ?? index + 1
  }
  if (chain.length > 1) kept.push(chain.at(-1))
  return kept
}

/** Folds a chain and inserts the contributing causes. */
async function told(store, chain) {
  const kept = fold(chain)
  const others = [
    ...(await requestsThatWaited(store, kept)),
    ...(await topicsFound(store, chain)),
  ]
  for (const other of others) {
    const place = kept.findIndex((event) => event.seq <= other.seq)
    if (place >= 0 && kept[place].seq !== other.seq) kept.splice(place, 0, other)
  }
  return kept
}

/** Continues a chain through a wait for a healthy peer with the peer's own wait and its cause. */
async function throughWaits(store, chain) {
  for (const [index, event] of chain.slice(0, HOPS_SEARCHED_MAX).entries()) {
    const inner = await waitedInTurn(store, event)
    if (!inner) continue
    const seen = inner.seq < event.seq ? [inner] : []
    const cause = await store.bySeq(inner.cause)
    return [...chain.slice(0, index + 1), ...seen, ...(await chainOf(store, cause))]
  }
  return chain
}

/** The causes of an event that matter, itself first, the root last; all of them unless folded. */
export async function why(store, event, isFolded = true) {
  const whole = await chainOf(store, event)
  if (!isFolded) return whole
  const chain = await throughWaits(store, whole)
  const enabling = await enabledBy(store, event)
  if (enabling) return [event, ...(await told(store, await chainOf(store, enabling)))]
  const refused = await whyRefused(store, chain)
  if (refused) return refused
  for (const [index, other] of chain.slice(0, HOPS_SEARCHED_MAX).entries()) {
    const waited =
      (await joinedSince(store, other)) ?? (await waitedFor(store, other, chain.at(-1).seq))
    if (!waited) continue
    const led = await told(store, await chainOf(store, waited))
    return [...(await told(store, chain.slice(0, index + 1))), ...led]
  }
  return told(store, chain)
}

/** The answer, the request and the causes of the refusal, if a chain begins with an error answer or
 *  a client's reaction to one; else null. */
async function whyRefused(store, chain) {
  const most = chain[0].kind.startsWith('client_') ? ANSWER_MAX : 1
  for (const [index, answer] of chain.slice(0, most).entries()) {
    if (!answer.type?.endsWith('Response')) continue
    const responder = answer.kind === 'send' ? answer.actor : answer.peer
    const request = chain
      .slice(index)
      .find((e) => e.kind === 'deliver' && e.actor === responder && e.type?.endsWith('Request'))
    const decided = request ? await decidedBy(store, answer, request) : null
    if (!decided) return null
    const head = chain.slice(0, index + 1).filter((e) => e.kind !== 'send' || e === chain[0])
    return [...head, request, ...(await told(store, await chainOf(store, decided)))]
  }
  return null
}

/** The effects of an event, as [event, depth] in the order of a tree, and whether these are all. */
export async function effects(store, event, isCancelled) {
  const children = new Map([[event.seq, []]])
  const first = store.chunkOfSeq(event.seq)
  let count = 0,
    isWhole = true
  search: for (let index = first; index < store.chunks.length; index++) {
    if (index - first >= EFFECT_CHUNKS_MAX) isWhole = false
    if (!isWhole || isCancelled()) break
    for (const other of await store.chunk(index)) {
      if (other.seq <= event.seq || !children.has(other.cause)) continue
      if (++count > EFFECTS_MAX) {
        isWhole = false
        break search
      }
      children.get(other.cause).push(other)
      children.set(other.seq, [])
    }
  }
  const rows = []
  const waiting = children
    .get(event.seq)
    .map((child) => [child, 0])
    .reverse()
  while (waiting.length) {
    const [next, depth] = waiting.pop()
    rows.push([next, depth])
    for (const child of children.get(next.seq).reverse()) waiting.push([child, depth + 1])
  }
  return { rows, isWhole }
}

const NEAR = 3000

/** Numbers of the decoded events near an event that causally precede it, and that follow it. */
export function happensBefore(store, place) {
  const event = store.at(place)
  const before = new Set(),
    after = new Set()
  if (!event) return { before, after }
  let lanes = new Set([event.actor])
  const wanted = new Set([event.cause])
  for (let at = place - 1; at >= Math.max(place - NEAR, 0); at--) {
    const other = store.at(at)
    if (!other) break
    if (!lanes.has(other.actor) && !wanted.has(other.seq)) continue
    before.add(other.seq)
    lanes.add(other.actor)
    wanted.add(other.cause)
  }
  lanes = new Set([event.actor])
  after.add(event.seq)
  for (let at = place + 1; at < Math.min(place + NEAR, store.length); at++) {
    const other = store.at(at)
    if (!other) break
    if (!lanes.has(other.actor) && !after.has(other.cause)) continue
    after.add(other.seq)
    lanes.add(other.actor)
  }
  return { before, after }
}

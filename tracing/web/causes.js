// Cause and effect: the chain that led to an event, what it led to, what happened before it.

import { ROOTS } from './text.js'

const HOPS_MAX = 4000
const ROUND_TRIP_MAX = 64
const WAIT_US = 1000
const EFFECTS_MAX = 300
const EFFECT_CHUNKS_MAX = 60

async function parentOf(store, event) {
  if (event.cause === null || event.cause >= event.seq || ROOTS.has(event.kind)) return null
  return store.bySeq(event.cause)
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

/** For the first append of a new leader: the event that made it the leader. */
async function enabledBy(store, event) {
  for (const [path, old] of event.delta) {
    if (!path.endsWith('/log_end_offset') || old === null) continue
    const role = await store.lastChange(path.replace(/log_end_offset$/, 'role'), event.seq)
    if (!role || role.now !== 'leader' || role.event.seq === event.seq) continue
    const before = await store.lastChange(path, event.seq - 1)
    if (!before || before.event.seq <= role.event.seq) return role.event
  }
  return null
}

/** For a delivery that answers what the actor had asked: where the chain goes on, there. */
function askedAt(chain, index) {
  const event = chain[index]
  if (event.kind !== 'deliver' || event.peer === event.actor) return null
  const end = Math.min(index + ROUND_TRIP_MAX, chain.length - 1)
  for (let later = index + 1; later < end; later++) {
    const other = chain[later]
    if (ROOTS.has(other.kind) || other.kind === 'expire') return null
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

/** The chain without sendings, questions that were answered, and waiting for one's turn. */
function fold(chain) {
  const kept = [chain[0]]
  let index = 1
  if (chain[0].kind === 'deliver' && !chain[0].hasDelta) index = askedAt(chain, 0) ?? 1
  while (index < chain.length - 1) {
    const back = askedAt(chain, index)
    if (chain[index].hasDelta || matters(chain, index, back)) kept.push(chain[index])
    index = back ?? index + 1
  }
  if (chain.length > 1) kept.push(chain.at(-1))
  return kept
}

/** The causes of an event that matter, itself first, the root last; all of them unless folded. */
export async function why(store, event, isFolded = true) {
  if (!isFolded) return chainOf(store, event)
  const enabling = await enabledBy(store, event)
  if (!enabling) return fold(await chainOf(store, event))
  return [event, ...fold(await chainOf(store, enabling))]
}

/** What an event led to, as [event, depth] in the order of a tree, and whether that is all. */
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

/** Numbers of the decoded events near one that happened before it, and of those after it. */
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

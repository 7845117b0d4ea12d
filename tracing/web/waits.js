// What came together with a cause: requests that waited in vain, topics that a controller found.

const ASKS_ZOOKEEPER = 'ClientPacket'
const CAME_MAX = 4000
const SENT_MAX = 64
const TOPICS = '/znodes/brokers/topics/'
const WAITED = 'Waited'
const WAITS_MAX = 8

/** Whether a message asks, so that it answers nothing. */
export const isAsked = ({ type }) => type === ASKS_ZOOKEEPER || Boolean(type?.endsWith('Request'))

/** The first event of a range for which something holds; no chunk is read that cannot have it. */
async function firstOf(store, start, stop, holds, about = {}) {
  for (let index = store.chunkOfSeq(start); index < store.chunks.length; index++) {
    if (store.chunks[index].first >= stop) break
    if (!store.mayHold(index, about)) continue
    const isIt = (event) => event.seq >= start && event.seq < stop && holds(event)
    const found = (await store.chunk(index)).find(isIt)
    if (found) return found
  }
  return null
}

/** Seq of the event at which a wait in vain began; null if it is none, or not in this slice. */
function begunAt(store, event) {
  if (event.kind !== 'expire' || event.type !== WAITED) return null
  const begun = event.fields.request
  const isHere = Number.isInteger(begun) && begun >= store.chunks[0].first && begun < event.seq
  return isHere ? begun : null
}

/** The request that an actor sent to the one it waited for, when it was handling an event. */
function sentThen(store, wait, begun) {
  const stop = Math.min(begun + SENT_MAX, wait.seq)
  return firstOf(
    store,
    begun + 1,
    stop,
    (event) =>
      event.kind === 'send' &&
      event.actor === wait.actor &&
      event.peer === wait.peer &&
      event.cause === begun &&
      isAsked(event),
  )
}

/** For whom the one waited that somebody waited for. His patience may end a little later. */
async function waitOfPeer(store, wait, begun) {
  const sent = await sentThen(store, wait, begun)
  if (!sent) return null
  const stop = Math.min(sent.seq + CAME_MAX, wait.seq)
  const came = await firstOf(store, sent.seq + 1, stop, (event) => event.cause === sent.seq)
  if (came?.kind !== 'deliver') return null
  const isHis = (event) => event.actor === wait.peer && begunAt(store, event) === came.seq
  return firstOf(store, came.seq + 1, wait.seq + CAME_MAX, isHis, { kind: 'expire' })
}

/** For each wait in vain among events: the request that waited, or what began it. */
export async function requestsThatWaited(store, events) {
  const found = []
  for (const event of events) {
    const begun = begunAt(store, event)
    if (begun === null) continue
    found.push((await sentThen(store, event, begun)) ?? (await store.bySeq(begun)))
  }
  return found
}

/** For a wait for somebody who was well: his own wait in vain for somebody else, because of the
 *  same request. */
export async function waitedInTurn(store, event) {
  let inner = event
  for (let met = 0; met < WAITS_MAX; met++) {
    const begun = begunAt(store, inner)
    if (begun === null || inner.cause !== begun) break
    const found = await waitOfPeer(store, inner, begun)
    if (!found || found.cause === null || found.cause >= event.seq) break
    inner = found
  }
  return inner === event ? null : inner
}

/** Who made the topics that a controller found at its start, for partitions that it set up. */
export async function topicsFound(store, chain) {
  const seqs = new Set(chain.map((event) => event.seq))
  const topics = new Map()
  for (const event of chain) {
    for (const [path, old] of event.delta) {
      const at = path.indexOf('/partitions/')
      const znode = path.slice(0, at)
      if (at < 0 || old !== null || !path.endsWith('/state') || !znode.includes(TOPICS)) continue
      if (!topics.has(znode)) topics.set(znode, event.seq)
    }
  }
  const found = []
  for (const [znode, seq] of topics) {
    let change = await store.lastChange(znode, seq)
    while (change && change.old !== null)
      change = await store.lastChange(znode, change.event.seq - 1)
    if (change && !seqs.has(change.event.seq)) found.push(change.event)
  }
  return found
}

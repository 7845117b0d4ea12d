// Events with two causes: waits in vain, and partitions that a new controller sets up.
// As in tracing/reading/waits.py, which says more.

const ASKS_ZOOKEEPER = 'ClientPacket'
const CAME_MAX = 4000
const SENT_MAX = 64
const TOPICS = '/znodes/brokers/topics/'
const WAITED = 'Waited'
const WAITS_MAX = 8

/** Whether a message is a request, and so no answer. */
export const isAsked = ({ type }) => type === ASKS_ZOOKEEPER || Boolean(type?.endsWith('Request'))

/** The first event of a range that passes a test; chunks that cannot have one are not read. */
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

/** Seq of the event at which a wait in vain began; null if the event is no such wait, or its
 *  beginning is not in the trace. */
function begunAt(store, event) {
  if (event.kind !== 'expire' || event.type !== WAITED) return null
  const begun = event.fields.request
  const isHere = Number.isInteger(begun) && begun >= store.chunks[0].first && begun < event.seq
  return isHere ? begun : null
}

/** The request that an actor sent to the peer it waited for, caused by an event. */
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

/** The peer's own wait in vain because of the request that an actor waited for. It may end a little
 *  later than the actor's. */
async function waitOfPeer(store, wait, begun) {
  const sent = await sentThen(store, wait, begun)
  if (!sent) return null
  const stop = Math.min(sent.seq + CAME_MAX, wait.seq)
  const came = await firstOf(store, sent.seq + 1, stop, (event) => event.cause === sent.seq)
  if (came?.kind !== 'deliver') return null
  const isHis = (event) => event.actor === wait.peer && begunAt(store, event) === came.seq
  return firstOf(store, came.seq + 1, wait.seq + CAME_MAX, isHis, { kind: 'expire' })
}

/** For each wait in vain among events, the request that waited, or the event that began it. */
export async function requestsThatWaited(store, events) {
  const found = []
  for (const event of events) {
    const begun = begunAt(store, event)
    if (begun === null) continue
    found.push((await sentThen(store, event, begun)) ?? (await store.bySeq(begun)))
  }
  return found
}

/** The last wait in a chain of waits that one request caused: an actor that waits in vain for a
 *  healthy peer does so because the peer waits in vain for a third. */
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

/** The events that created the topics whose partitions are set up in a chain of causes, unless they
 *  are in the chain themselves. */
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

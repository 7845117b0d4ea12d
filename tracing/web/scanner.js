// Searches a whole trace in a worker, which has its own heap: a million events make much garbage,
// and the page must not pause while it is collected.

import { byId } from './dom.js'
import { compileFilter, scan } from './filter.js'
import { inflate, packedBytes, Store } from './store.js'

const TOLD_EVERY_MS = 100
const CHUNKS_KEPT_BY_WORKER = 4

/** The page's side: passes parts of the trace to the worker, and receives its findings. */
export class Scanner {
  constructor(store) {
    this.store = store
    this.round = 0
    this.worker = null
    this.tell = this.end = null
  }

  start() {
    const code = new Blob([byId('script').textContent], { type: 'text/javascript' })
    const url = URL.createObjectURL(code)
    this.worker = new Worker(url)
    URL.revokeObjectURL(url)
    this.worker.onmessage = ({ data }) => {
      if ('wants' in data) this.serve(data)
      else if (data.round === this.round) this.tell?.(data)
    }
    this.worker.onerror = (error) => this.tell?.({ error: error.message || 'it stopped' })
  }

  async serve({ wants, number }) {
    try {
      this.worker?.postMessage({ number, packed: await this.store.parts.packed(wants) })
    } catch (error) {
      this.worker?.postMessage({ number, error: error.message })
    }
  }

  /** Ends the current search and resolves its promise. */
  cancel() {
    this.round++
    this.tell = null
    this.end?.()
  }

  /** Discards the worker with all it has read, as the trace has changed. */
  forget() {
    this.cancel()
    this.worker?.terminate()
    this.worker = null
  }

  /** Calls `found(places, share)` repeatedly until the whole trace is searched. */
  filter(text, found) {
    return this.ask({ text }, (data) => {
      found(data.places, data.share)
      return data.isDone
    })
  }

  /** The place of the next or previous event that passes a filter; null if there is none. */
  async next(text, place, direction) {
    let found = null
    await this.ask({ text, place, direction }, (data) => {
      found = data.found
      return true
    })
    return found
  }

  ask(question, take) {
    this.cancel()
    if (!this.worker) this.start()
    const { round } = this
    return new Promise((resolve, reject) => {
      this.end = resolve
      this.tell = (data) => {
        if (data.error) reject(new Error(data.error))
        else if (take(data)) resolve()
      }
      this.worker.postMessage({ round, ...question })
    })
  }
}

/** The parts of a trace in the worker, which requests them from the page. */
class AskedParts {
  constructor() {
    this.asked = new Map()
    this.number = 0
  }

  async read(wants) {
    const number = ++this.number
    const packed = await new Promise((resolve, reject) => {
      this.asked.set(number, { resolve, reject })
      postMessage({ wants, number })
    })
    return inflate(packedBytes(packed))
  }

  take({ number, packed, error }) {
    const { resolve, reject } = this.asked.get(number)
    this.asked.delete(number)
    if (error) reject(new Error(error))
    else resolve(packed)
  }
}

/** Answers the page's searches, in the worker. */
export function serveScans() {
  const parts = new AskedParts()
  let opened = null
  let latest = 0
  addEventListener('message', async ({ data }) => {
    if ('number' in data) return parts.take(data)
    latest = data.round
    const isCancelled = () => data.round !== latest
    try {
      opened ??= new Store(parts, CHUNKS_KEPT_BY_WORKER).open()
      const store = await opened
      const filter = compileFilter(data.text, store)
      if ('direction' in data) await findNext(store, filter, data, isCancelled)
      else await findAll(store, filter, data.round, isCancelled)
    } catch (error) {
      postMessage({ round: data.round, error: error.message })
    }
  })
}

async function findAll(store, filter, round, isCancelled) {
  let gathered = []
  let toldAt = performance.now()
  const tell = (share, isDone) => {
    const places = Float64Array.from(gathered)
    postMessage({ round, places, share, isDone }, [places.buffer])
    gathered = []
    toldAt = performance.now()
  }
  const found = (places, index) => {
    for (const place of places) gathered.push(place)
    if (performance.now() - toldAt > TOLD_EVERY_MS) tell((index + 1) / store.chunks.length, false)
  }
  if (await scan(store, filter, found, isCancelled)) tell(1, true)
}

async function findNext(store, filter, { round, place, direction }, isCancelled) {
  for (let i = store.chunkOfPlace(place); i >= 0 && i < store.chunks.length; i += direction) {
    if (isCancelled()) return
    if (!store.mayHold(i, filter.required)) continue
    const events = await store.chunk(i)
    const start = store.chunks[i].place
    let at = direction > 0 ? Math.max(place - start + 1, 0) : Math.min(place - start, events.length)
    if (direction < 0) at--
    for (; at >= 0 && at < events.length; at += direction)
      if (filter.test(events[at])) return postMessage({ round, found: start + at })
  }
  postMessage({ round, found: null })
}

// A trace in memory: its index is read at once, its chunks are decoded on demand.

import { unpack } from './msgpack.js'
import { nameFields } from './text.js'

const CHUNKS_KEPT = 150
const SNAPSHOTS_KEPT = 8
const SEQ = 0,
  TIME = 1,
  KIND = 2,
  ACTOR = 3,
  PEER = 4,
  TYPE = 5,
  MESSAGE = 6,
  CAUSE = 7
const EPOCHS = 8,
  PAYLOAD = 9,
  DELTA = 10,
  WHY = 11,
  OP = 12

/** One event. The names of its fields and paths are looked up on demand. */
export class TraceEvent {
  constructor(raw, store) {
    this.raw = raw
    this.store = store
    this.seq = raw[SEQ]
    this.timeUs = Math.floor(raw[TIME] / 1000)
    this.kind = store.kinds[raw[KIND]] ?? `kind-${raw[KIND]}`
    this.actor = store.strings[raw[ACTOR]]
    this.peer = raw[PEER] === null ? null : store.strings[raw[PEER]]
    this.type = raw[TYPE] === null ? null : store.strings[raw[TYPE]]
    this.message = raw[MESSAGE]
    this.cause = raw[CAUSE]
    this.epochs = raw[EPOCHS]
    this.why = raw[WHY]
    this.op = raw[OP] ?? null
  }

  get delta() {
    return this.raw[DELTA].map(([path, old, now]) => [this.store.strings[path], old, now])
  }

  get hasDelta() {
    return this.raw[DELTA].length > 0
  }

  get fields() {
    if (this.named === undefined) {
      const payload = this.raw[PAYLOAD]
      const isEmpty = payload === null || this.type === null
      this.named = isEmpty ? {} : nameFields(this.store, this.type, payload)
    }
    return this.named
  }
}

/** Whether a little-endian bit set contains a number. */
function inBits(bits, number) {
  return ((bits[number >> 3] ?? 0) >> (number & 7)) & 1
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text)
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

/** The bytes of a part, which is base64 if it comes from the page itself. */
export function packedBytes(packed) {
  return typeof packed === 'string' ? fromBase64(packed) : packed
}

export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

/** Packed parts in the document itself, each a script element with gzip in base64. */
export class EmbeddedParts {
  constructor(name) {
    this.name = name
  }

  packed(part) {
    const element = document.getElementById(`${this.name}-${part}`)
    if (!element) throw new Error(`the page holds no part ${part}`)
    return element.textContent
  }

  async read(part) {
    return inflate(packedBytes(this.packed(part)))
  }
}

export class Store {
  constructor(parts, kept = CHUNKS_KEPT) {
    this.parts = parts
    this.kept = kept
    this.loading = new Map()
    this.decoded = new Map()
    this.snapshots = new Map()
  }

  async open() {
    this.take(await this.readJson('index'))
    return this
  }

  async readJson(part) {
    return JSON.parse(new TextDecoder().decode(await this.parts.read(part)))
  }

  /** Reads the index of a run that has gone on; unchanged chunks stay decoded. */
  async reopen() {
    const before = this.chunks
    const { generation } = this
    await this.open()
    this.snapshots.clear()
    for (const i of [...this.decoded.keys()])
      if (generation !== this.generation || before[i]?.events !== this.chunks[i]?.events)
        this.decoded.delete(i)
  }

  take(index) {
    Object.assign(this, index)
    let place = 0
    for (const chunk of this.chunks) {
      chunk.place = place
      place += chunk.events
      for (const name of ['actors_in', 'types_in', 'kinds_in', 'paths_in'])
        if (typeof chunk[name] === 'string') chunk[name] = fromBase64(chunk[name])
    }
    this.length = place
    this.numbers = new Map(this.strings.map((text, number) => [text, number]))
  }

  get lastSeq() {
    return this.chunks.at(-1)?.last ?? -1
  }

  /** Index of the last chunk for which `value(chunk) <= wanted`, at least 0. */
  chunkBy(value, wanted) {
    let low = 0,
      high = this.chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (value(this.chunks[middle]) <= wanted) low = middle
      else high = middle - 1
    }
    return low
  }

  chunkOfPlace(place) {
    return this.chunkBy((chunk) => chunk.place, place)
  }

  chunkOfSeq(seq) {
    return this.chunkBy((chunk) => chunk.first, seq)
  }

  /** The events of a chunk if they are decoded; otherwise null. */
  peek(index) {
    const events = this.decoded.get(index)
    if (events === undefined) return null
    this.decoded.delete(index)
    this.decoded.set(index, events)
    return events
  }

  async chunk(index) {
    const there = this.peek(index)
    if (there) return there
    if (!this.loading.has(index)) {
      const loading = this.load(index).finally(() => this.loading.delete(index))
      this.loading.set(index, loading)
    }
    return this.loading.get(index)
  }

  async load(index) {
    const body = unpack(await this.parts.read(`chunk-${index}`))
    const events = body[3].map((raw) => new TraceEvent(raw, this))
    this.decoded.set(index, events)
    if (this.decoded.size > this.kept) this.decoded.delete(this.decoded.keys().next().value)
    return events
  }

  /** The event at a place if it is decoded; otherwise null. */
  at(place) {
    const index = this.chunkOfPlace(place)
    const events = this.peek(index)
    return events ? (events[place - this.chunks[index].place] ?? null) : null
  }

  async event(place) {
    const index = this.chunkOfPlace(place)
    return (await this.chunk(index))[place - this.chunks[index].place] ?? null
  }

  /** Place of the last event whose number is at most `seq`. If numbers have gaps, as in a part of a
   *  trace, it is exact only in a decoded chunk. */
  placeOf(seq) {
    const index = this.chunkOfSeq(seq)
    const chunk = this.chunks[index]
    if (!chunk || seq < chunk.first) return 0
    if (chunk.last - chunk.first + 1 === chunk.events)
      return chunk.place + Math.min(seq - chunk.first, chunk.events - 1)
    const events = this.peek(index)
    if (!events) return chunk.place
    let place = 0
    while (place + 1 < events.length && events[place + 1].seq <= seq) place++
    return chunk.place + place
  }

  /** The event with a number; null if a part of a trace lacks it. */
  async bySeq(seq) {
    if (seq === null || seq < 0 || !this.chunks.length) return null
    await this.chunk(this.chunkOfSeq(seq))
    const event = await this.event(this.placeOf(seq))
    return event?.seq === seq ? event : null
  }

  /** Place of the last event at or before a time. */
  async placeAt(timeUs) {
    const index = this.chunkBy((chunk) => chunk.from_us, timeUs)
    const events = await this.chunk(index)
    let last = 0
    for (let i = 0; i < events.length && events[i].timeUs <= timeUs; i++) last = i
    return this.chunks[index].place + last
  }

  /** Whether a chunk may hold an event with this actor, type or kind; true if that is unknown. */
  mayHold(index, { actor, type, kind }) {
    const chunk = this.chunks[index]
    if (actor !== undefined && !inBits(chunk.actors_in, this.numbers.get(actor) ?? 1e6))
      return false
    if (type !== undefined && !inBits(chunk.types_in, this.numbers.get(type) ?? 1e6)) return false
    return kind === undefined || Boolean(inBits(chunk.kinds_in, this.kinds.indexOf(kind)))
  }

  /** The last change of a path at or before an event: the event, the old and the new value. */
  async lastChange(path, seq) {
    const number = this.numbers.get(path)
    if (number === undefined) return null
    for (let index = this.chunkOfSeq(seq); index >= 0; index--) {
      if (!inBits(this.chunks[index].paths_in, number)) continue
      const events = await this.chunk(index)
      for (let i = events.length - 1; i >= 0; i--) {
        if (events[i].seq > seq) continue
        for (const [changed, old, now] of events[i].raw[DELTA])
          if (changed === number) return { event: events[i], old, now }
      }
    }
    return null
  }

  async snapshot(index) {
    let entries = this.snapshots.get(index)
    if (!entries) {
      entries = unpack(await this.parts.read(`snapshot-${index}`))[1]
      this.snapshots.set(index, entries)
      if (this.snapshots.size > SNAPSHOTS_KEPT)
        this.snapshots.delete(this.snapshots.keys().next().value)
    }
    return entries
  }

  /** The state after an event: path to [value, number of the event that set it]. */
  async stateAt(seq) {
    let before = -1
    const values = new Map()
    const index = this.snapshot_seqs.findLastIndex((at) => at <= seq)
    if (index >= 0) {
      before = this.snapshot_seqs[index]
      for (const [path, value, at] of await this.snapshot(index)) values.set(path, [value, at])
    }
    if (!this.chunks.length) return new Map()
    const last = this.chunkOfSeq(seq)
    for (let i = this.chunkOfSeq(Math.max(before + 1, 0)); i <= last; i++) {
      if (!this.chunks[i].paths_in.length) continue
      for (const { raw } of await this.chunk(i)) {
        if (raw[SEQ] <= before || raw[SEQ] > seq) continue
        for (const [path, , value] of raw[DELTA])
          if (value === null) values.delete(path)
          else values.set(path, [value, raw[SEQ]])
      }
    }
    const named = [...values].map(([path, value]) => [this.strings[path], value])
    return new Map(named.sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}

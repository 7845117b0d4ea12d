// The language of the filter and the search: words, or an expression as in `trace grep`.

import { summary } from './text.js'

const NUMBER = /(\d+(?:\.\d+)?)(us|ms|s|min)?\b/
const TEXT_IN_QUOTES = /"([^"]*)"|'([^']*)'/
const NAME = /([A-Za-z_@][\w.@-]*)/
const SIGN = /(==|!=|<=|>=|[<>()[\],])/
const KINDS_OF_TOKENS = [NUMBER, TEXT_IN_QUOTES, NAME, SIGN].map((kind) => kind.source)
const TOKEN = new RegExp(`\\s*(?:${KINDS_OF_TOKENS.join('|')})`, 'y')
const UNITS = { us: 1, ms: 1e3, s: 1e6, min: 6e7 }
const COLUMNS = {
  seq: (event) => event.seq,
  time: (event) => event.timeUs,
  kind: (event) => event.kind,
  actor: (event) => event.actor,
  peer: (event) => event.peer,
  type: (event) => event.type,
  why: (event) => event.why,
  op: (event) => event.op,
  cause: (event) => event.cause,
  delta: (event) => event.delta.map(([path]) => path).join(' '),
  text: (event) => summary(event),
}
const EPOCH_NAMES = ['controller', 'leader', 'zk_version']

function lookUp(event, path) {
  if (Object.hasOwn(COLUMNS, path)) return COLUMNS[path](event)
  const names = path.split('.')
  if (names[0] === 'epochs') return event.epochs?.[EPOCH_NAMES.indexOf(names[1])]
  if (names[0] === 'payload' || names[0] === 'fields') names.shift()
  let value = event.fields
  for (const name of names)
    value =
      value !== null && typeof value === 'object' && Object.hasOwn(value, name)
        ? value[name]
        : undefined
  return value
}

function tokens(text) {
  const found = []
  TOKEN.lastIndex = 0
  while (text.slice(TOKEN.lastIndex).trim()) {
    const start = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (!match) throw new SyntaxError(`not understood at column ${start + 1}`)
    const [, number, unit, double, single, name, sign] = match
    if (number !== undefined) found.push({ value: Number(number) * (UNITS[unit] ?? 1) })
    else if (double !== undefined || single !== undefined) found.push({ value: double ?? single })
    else found.push({ name, sign })
  }
  return found
}

const COMPARE = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<': (a, b) => typeof a === typeof b && a < b,
  '<=': (a, b) => typeof a === typeof b && a <= b,
  '>': (a, b) => typeof a === typeof b && a > b,
  '>=': (a, b) => typeof a === typeof b && a >= b,
  in: (a, b) => (Array.isArray(b) ? b.includes(a) : String(b ?? '').includes(String(a))),
}

class FilterParser {
  constructor(text, store) {
    this.tokens = tokens(text)
    this.at = 0
    this.words = new Set([...store.kinds, ...store.strings])
    this.names = new Set(Object.values(store.schema).flatMap((fields) => fields.map(([f]) => f)))
    this.required = {}
  }

  is(text) {
    const token = this.tokens[this.at]
    if (!token || (token.name !== text && token.sign !== text)) return false
    this.at++
    return true
  }

  whole() {
    const test = this.either()
    if (this.at < this.tokens.length) throw new SyntaxError('something is left over at the end')
    return test
  }

  either() {
    let left = this.both()
    while (this.is('or')) {
      this.required = {}
      const first = left,
        second = this.both()
      left = (event) => first(event) || second(event)
      this.required = {}
    }
    return left
  }

  both() {
    let left = this.negated()
    while (this.is('and')) {
      const first = left,
        second = this.negated()
      left = (event) => first(event) && second(event)
    }
    return left
  }

  negated() {
    if (!this.is('not')) return this.comparison()
    const kept = { ...this.required }
    const inner = this.negated()
    this.required = kept
    return (event) => !inner(event)
  }

  comparison() {
    const left = this.operand()
    for (const sign of Object.keys(COMPARE)) {
      if (!this.is(sign)) continue
      const right = this.operand()
      if (sign === '==' && left.column && right.constant !== undefined)
        this.required[left.column] = right.constant
      return (event) => COMPARE[sign](left.of(event), right.of(event))
    }
    if (this.is('not') && this.is('in')) {
      const right = this.operand()
      return (event) => !COMPARE.in(left.of(event), right.of(event))
    }
    return (event) => Boolean(left.of(event))
  }

  operand() {
    if (this.is('(')) {
      const inner = this.either()
      if (!this.is(')')) throw new SyntaxError('a ) is missing')
      return { of: inner }
    }
    if (this.is('[')) {
      const items = []
      while (!this.is(']')) {
        items.push(this.operand())
        if (!this.is(',') && this.tokens[this.at]?.sign !== ']')
          throw new SyntaxError('a ] is missing')
      }
      return { of: (event) => items.map((item) => item.of(event)) }
    }
    const token = this.tokens[this.at++]
    if (!token) throw new SyntaxError('something is missing at the end')
    if ('value' in token) return { of: () => token.value, constant: token.value }
    const name = token.name
    if (name === undefined) throw new SyntaxError(`${token.sign} is not expected there`)
    if (name === 'None' || name === 'null') return { of: () => null }
    if (name === 'True' || name === 'False') return { of: () => name === 'True' }
    const first = name.split('.')[0]
    const isColumn = Object.hasOwn(COLUMNS, name) || ['epochs', 'payload', 'fields'].includes(first)
    if (isColumn || (this.names.has(first) && !this.words.has(name)))
      return { of: (event) => lookUp(event, name) ?? null, column: name }
    if (this.words.has(name)) return { of: () => name, constant: name }
    throw new SyntaxError(`there is no ${name} in this trace`)
  }
}

/** A test of events, and the columns with the values that every passing event must have. Throws
 *  SyntaxError. */
export function compileFilter(text, store) {
  if (/==|!=|[<>]=?|\bin\b|^not\b/.test(text)) {
    const parser = new FilterParser(text, store)
    const test = parser.whole()
    return { test, required: parser.required }
  }
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const mayPass = quickTest(words, store)
  const known = new Map()
  const test = (event) => {
    const head = headOf(event, known)
    if (words.every((part) => head.includes(part))) return true
    if (!mayPass(event, head)) return false
    const line = `${head} ${summary(event).toLowerCase()}`
    return words.every((part) => line.includes(part))
  }
  return { test, required: {} }
}

/** Kind, actors and type in lower case; cached, as few combinations occur. */
function headOf(event, known) {
  const [, , kind, actor, peer, type] = event.raw
  const key = ((kind * 4096 + actor) * 4096 + (peer ?? 4095)) * 4096 + (type ?? 4095)
  let head = known.get(key)
  if (head === undefined) known.set(key, (head = headText(event)))
  return head
}

function headText(event) {
  return `${event.kind} ${event.actor} ${event.peer ?? ''} ${event.type ?? ''}`.toLowerCase()
}

/** A fast test that searches payloads as they are stored. Words that may be part of field or error
    names pass it: only the event's line has these names, which takes far longer to make. */
function quickTest(words, store) {
  const fields = Object.values(store.schema).flatMap((list) => list.map(([name]) => name))
  const names = Object.values(store.enums).flatMap((table) => Object.values(table))
  const derived = [...new Set([...fields, ...names, 'true false'])].join(' ').toLowerCase()
  const plain = words.filter((part) => /^[\w.:/-]+$/.test(part) && !derived.includes(part))
  const stored = plain.filter((part) => !/\d-\d|-\d+$|^m\d|[:.,]/.test(part))
  return (event, head) => {
    const missing = stored.filter((part) => !head.includes(part))
    if (!missing.length) return true
    const parts = JSON.stringify([event.raw[9], event.why, event.kind === 'state' && event.delta])
    const whole = parts.toLowerCase()
    return missing.every((part) => whole.includes(part))
  }
}

/** Goes through a whole trace and calls `found` for each chunk. The next chunk is read ahead. */
export async function scan(store, filter, found, isCancelled) {
  const wanted = store.chunks.flatMap((_, i) => (store.mayHold(i, filter.required) ? [i] : []))
  for (const [turn, index] of wanted.entries()) {
    if (isCancelled()) return false
    const events = await store.chunk(index)
    if (turn + 1 < wanted.length) store.chunk(wanted[turn + 1]).catch(() => {})
    const places = []
    for (const [i, event] of events.entries())
      if (filter.test(event)) places.push(store.chunks[index].place + i)
    found(places, index)
  }
  return true
}

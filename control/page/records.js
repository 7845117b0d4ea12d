// The records of one partition, newest first and in pages, and a form that appends a record.

import { get } from './control.js'
import { h, heading, table } from './dom.js'

const LIMIT = 50
const SHOWN_CHARACTERS = 200
const WHOLE_BYTES = 1_000_000
const FORMS = ['text', 'JSON', 'hex']
const number = new Intl.NumberFormat('en')
const date = new Intl.DateTimeFormat('sv-SE', {
  dateStyle: 'short',
  timeStyle: 'medium',
})

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}

function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
}

/** Formats bytes as text, indented JSON or hexadecimal; bytes that are not UTF-8 as the last. */
export function shownAs(form, bytes) {
  if (form === 'hex') return hex(bytes)
  let text
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return hex(bytes)
  }
  if (form === 'JSON')
    try {
      return JSON.stringify(JSON.parse(text), null, 2)
    } catch {
      return text
    }
  return text
}

/** The records on display; `changed` is called when they must be drawn again. */
export class Records {
  constructor(changed) {
    this.changed = changed
    this.topic = null
    this.partition = 0
    this.form = 'text'
    this.page = null
    this.query = ''
    this.error = null
    this.whole = new Map()
    this.lastReadId = 0
  }

  open(topic, partition) {
    Object.assign(this, { topic, partition, page: null, error: null })
    this.whole.clear()
    this.read('')
  }

  close() {
    this.topic = null
    this.lastReadId += 1
    this.changed()
  }

  setForm(form) {
    this.form = form
    this.changed()
  }

  path(query, limit = LIMIT) {
    const topic = encodeURIComponent(this.topic)
    return `/topics/${topic}/${this.partition}/page?limit=${limit}${query}`
  }

  /** Reads a page; the newest if the query is empty. */
  async read(query) {
    this.query = query
    const readId = (this.lastReadId += 1)
    this.changed()
    try {
      const page = await get(this.path(query))
      if (readId !== this.lastReadId) return
      this.page = page
      this.error = null
    } catch (error) {
      if (readId !== this.lastReadId) return
      this.error = error.message
    }
    this.changed()
  }

  /** Reads the whole of a record that was truncated. */
  async readWhole(offset) {
    try {
      const one = await get(this.path(`&offset=${offset}&shown_bytes=${WHOLE_BYTES}`, 1))
      if (one.records[0]?.offset === offset) this.whole.set(offset, one.records[0])
    } catch (error) {
      this.error = error.message
    }
    this.changed()
  }

  /** Reads the newest page again if it is shown and there are newer records. */
  follow(state) {
    const partition = state.topics[this.topic]?.[this.partition]
    const ends = Object.values(partition?.offsets ?? {}).map((pair) => pair[1])
    const end = Math.max(...ends, 0)
    if (this.topic !== null && this.query === '' && this.page && end > this.page.log_end_offset)
      this.read('')
  }
}

function field(records, one, name) {
  const data = one[name]
  if (data === null) return h('span', { class: 'quiet' }, 'null')
  const text = shownAs(records.form, bytesOf(data))
  const size = one[`${name}_bytes`]
  const isCut = size > bytesOf(data).length
  if (text.length <= SHOWN_CHARACTERS && !isCut) return h('span', { class: 'data' }, text)
  return h(
    'details',
    { key: `${name} ${one.offset}` },
    h(
      'summary',
      { 'aria-label': `The whole ${name} of the record at offset ${one.offset}` },
      h('span', { class: 'data' }, `${text.slice(0, SHOWN_CHARACTERS)}…`),
    ),
    h('div', { class: 'data' }, text),
    isCut
      ? h(
          'p',
          { class: 'quiet' },
          `${number.format(bytesOf(data).length)} of ${number.format(size)} bytes `,
          h(
            'button',
            {
              type: 'button',
              'aria-label': `Read all of the record at offset ${one.offset}`,
              onclick: () => records.readWhole(one.offset),
            },
            'Read all',
          ),
        )
      : null,
  )
}

function row(records, shown) {
  const one = records.whole.get(shown.offset) ?? shown
  if (one.error !== undefined)
    return h(
      'tr',
      { key: one.offset, class: 'offline' },
      h('th', { scope: 'row' }, number.format(one.offset)),
      h('td', { class: 'wide', colspan: 3 }, `cannot be read: ${one.error}`),
    )
  const badges = [
    one.is_control ? h('span', { class: 'badge' }, 'end of a transaction') : null,
    one.is_transactional && !one.is_control
      ? h('span', { class: 'badge busy' }, 'transactional')
      : null,
    one.is_replicated ? null : h('span', { class: 'badge warning' }, 'not replicated yet'),
  ]
  return h(
    'tr',
    { key: one.offset, 'data-offset': one.offset },
    h('th', { scope: 'row', 'data-title': 'offset' }, number.format(one.offset)),
    h(
      'td',
      { class: 'time', 'data-title': 'time' },
      one.timestamp < 0 ? '–' : date.format(one.timestamp),
    ),
    h('td', { 'data-title': 'key' }, field(records, one, 'key')),
    h(
      'td',
      { class: 'wide value' },
      one.is_control ? null : field(records, one, 'value'),
      badges,
      one.headers.length
        ? h(
            'p',
            { class: 'quiet' },
            one.headers.map(([name, value]) =>
              h(
                'span',
                { class: 'header' },
                `${name}: ${value === null ? 'null' : shownAs(records.form, bytesOf(value))} `,
              ),
            ),
          )
        : null,
    ),
  )
}

function step(text, label, onclick, isOn = true) {
  return h(
    'button',
    {
      key: label,
      type: 'button',
      'aria-label': label,
      disabled: !isOn,
      onclick,
    },
    text,
  )
}

function input(label, attributes = {}) {
  return h('input', { key: label, 'aria-label': label, placeholder: label, ...attributes })
}

function valueOf(element, label) {
  return element.closest('section').querySelector(`[aria-label="${label}"]`).value
}

function placeControls(records, partitions) {
  const goToOffset = (event) => {
    const offset = Number.parseInt(valueOf(event.currentTarget, 'Offset'), 10)
    if (offset >= 0) records.read(`&offset=${offset}`)
  }
  const goToTime = (event) => {
    const at = Date.parse(valueOf(event.currentTarget, 'Time'))
    if (at >= 0) records.read(`&timestamp=${at}`)
  }
  const onEnter = (go) => (event) => event.key === 'Enter' && go(event)
  return h(
    'div',
    { key: 'places', class: 'controls' },
    h(
      'label',
      {},
      'partition ',
      h(
        'select',
        {
          'aria-label': 'Partition',
          value: String(records.partition),
          onchange: (event) => records.open(records.topic, Number(event.currentTarget.value)),
        },
        partitions.map((one) =>
          h('option', { key: one.partition, value: String(one.partition) }, one.partition),
        ),
      ),
    ),
    h(
      'div',
      { class: 'actions', role: 'group', 'aria-label': 'How keys and values are shown' },
      FORMS.map((form) =>
        h(
          'button',
          {
            key: form,
            type: 'button',
            'aria-label': `Show keys and values as ${form}`,
            'aria-pressed': String(records.form === form),
            onclick: () => records.setForm(form),
          },
          form,
        ),
      ),
    ),
    h(
      'div',
      { class: 'actions' },
      input('Offset', { inputmode: 'numeric', size: 10, onkeydown: onEnter(goToOffset) }),
      step('Go', 'Go to the offset', goToOffset),
    ),
    h(
      'div',
      { class: 'actions' },
      input('Time', { type: 'datetime-local', step: 1, onkeydown: onEnter(goToTime) }),
      step('Go', 'Go to the time', goToTime),
    ),
  )
}

function pageControls(records) {
  const { page } = records
  if (page === null) return null
  const { records: shown } = page
  const span = shown.length
    ? `${number.format(shown.at(-1).offset)} to ${number.format(shown[0].offset)}`
    : 'no records here'
  return h(
    'div',
    { key: 'pages', class: 'controls' },
    h(
      'div',
      { class: 'actions' },
      step('Newest', 'The newest records', () => records.read('')),
      step(
        'Newer',
        'Newer records',
        () => records.read(`&offset=${page.later}`),
        page.later !== null,
      ),
      step(
        'Older',
        'Older records',
        () => records.read(`&before=${page.earlier}`),
        page.earlier !== null,
      ),
      step('Oldest', 'The oldest records', () => records.read(`&offset=${page.log_start_offset}`)),
    ),
    h('span', { class: 'quiet', id: 'span' }, span),
    h(
      'span',
      { class: 'quiet' },
      `log ${number.format(page.log_start_offset)} to ${number.format(page.log_end_offset)}, ` +
        `high watermark ${number.format(page.high_watermark)}`,
    ),
  )
}

function form(records, act) {
  const produce = (event) => {
    const section = event.currentTarget.closest('section')
    const isNull = section.querySelector('[aria-label="Null instead of the value"]').checked
    const key = valueOf(event.currentTarget, 'Key')
    const body = { value: isNull ? null : valueOf(event.currentTarget, 'Value') }
    if (key !== '') body.key = key
    const topic = encodeURIComponent(records.topic)
    act('Produce', 'POST', `/topics/${topic}/${records.partition}/records`, body, () =>
      records.read(''),
    )
  }
  return h(
    'details',
    { key: 'produce', class: 'form' },
    h('summary', {}, 'Produce a record'),
    h(
      'div',
      { class: 'controls' },
      input('Key', { size: 16 }),
      h('textarea', { 'aria-label': 'Value', placeholder: 'Value', rows: 2 }),
      h(
        'label',
        {},
        h('input', { type: 'checkbox', 'aria-label': 'Null instead of the value' }),
        ' null',
      ),
      h(
        'button',
        { type: 'button', class: 'good', 'aria-label': 'Produce the record', onclick: produce },
        'Produce',
      ),
    ),
  )
}

/** Describes the section of records; empty if no topic is open. */
export function recordsOf(records, state, act) {
  const { topic, page, error } = records
  if (topic === null) return []
  const partitions = state.topics[topic] ?? []
  const titles = ['offset', 'time', 'key', 'value']
  const exists = partitions.length > 0
  return [
    heading(
      `Records of ${topic}-${records.partition}`,
      undefined,
      step('Close', 'Close the records', () => records.close()),
    ),
    exists ? placeControls(records, partitions) : h('p', { key: 'gone' }, 'The topic was deleted.'),
    error ? h('p', { key: 'error', class: 'error' }, error) : null,
    pageControls(records),
    page?.records.length
      ? table(`Records of ${topic}-${records.partition}, newest first`, titles, [
          page.records.map((one) => row(records, one)),
        ])
      : page
        ? h('p', { key: 'none', class: 'quiet' }, 'There are no records here.')
        : h('p', { key: 'reading', class: 'quiet' }, 'Reading…'),
    exists ? form(records, act) : null,
  ]
}

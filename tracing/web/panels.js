// The panels about the chosen event: its payload, its causes, its effects, the state after it.

import { effects, why } from './causes.js'
import { byId, el } from './dom.js'
import { ARROWS, formatTime, summary, whoText, word } from './text.js'

const DEPTH_MAX = 12
const STATE_MAX = 600
const TABS = ['Event', 'Why', 'Effects', 'State']

/** A value with its parts below it, expanded if they are few. */
function tree(name, value, depth = 0) {
  const isParts =
    value !== null && typeof value === 'object' && !('head' in value && 'length' in value)
  if (!isParts || depth > DEPTH_MAX || !Object.keys(value).length)
    return el('div', { class: 'leaf' }, el('span', { class: 'field' }, `${name}`), word(value))
  const entries = Object.entries(value)
  const details = el(
    'details',
    {},
    el(
      'summary',
      {},
      el('span', { class: 'field' }, name),
      el('span', { class: 'quiet' }, word(value)),
    ),
  )
  const fill = () => {
    if (details.children.length === 1)
      details.append(...entries.slice(0, 500).map(([key, item]) => tree(key, item, depth + 1)))
  }
  details.addEventListener('toggle', fill)
  if (entries.length <= 8 && depth < 3) {
    details.open = true
    fill()
  }
  return details
}

function delta(event) {
  const rows = event.delta.map(([path, old, now]) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, path),
      el('td', { class: 'old' }, word(old)),
      el('td', { class: 'new' }, word(now)),
    ),
  )
  return el(
    'table',
    { class: 'delta' },
    el(
      'thead',
      {},
      el('tr', {}, ...['state', 'before', 'after'].map((name) => el('th', { scope: 'col' }, name))),
    ),
    el('tbody', {}, rows),
  )
}

export class Panels {
  constructor(app) {
    this.app = app
    this.tab = 'Event'
    this.showsOnlyChanged = false
    this.everyStep = false
    byId('tabs').append(
      ...TABS.map((name, i) =>
        el(
          'button',
          {
            role: 'tab',
            id: `tab-${name}`,
            title: `${name} (${i + 1})`,
            'aria-controls': 'panel',
            click: () => this.open(name),
          },
          name,
        ),
      ),
    )
  }

  open(name) {
    this.tab = typeof name === 'number' ? (TABS[name] ?? this.tab) : name
    this.show()
  }

  async show() {
    for (const name of TABS)
      byId(`tab-${name}`).setAttribute('aria-selected', String(name === this.tab))
    byId('panel').setAttribute('aria-labelledby', `tab-${this.tab}`)
    const event = this.app.chosen
    if (!event) return byId('panel').replaceChildren()
    const makers = {
      Event: 'eventPanel',
      Why: 'whyPanel',
      Effects: 'effectsPanel',
      State: 'statePanel',
    }
    const tab = this.tab
    const isOld = () => this.app.chosen !== event || this.tab !== tab
    const content = await this[makers[tab]](event, isOld)
    if (!isOld()) byId('panel').replaceChildren(...content)
    return undefined
  }

  /** A line that leads to an event. */
  link(event, depth = 0, note = '') {
    return el(
      'button',
      {
        class: `link kind-${event.kind}`,
        style: { paddingLeft: `${8 + Math.min(depth, 16) * 12}px` },
        click: () => this.app.goToSeq(event.seq),
      },
      el('span', { class: 'seq' }, `#${event.seq}`),
      el('span', { class: 'time' }, formatTime(event.timeUs)),
      el(
        'span',
        {},
        `${note}${event.kind} ${whoText(event)} `,
        el('b', {}, event.type ?? ''),
        ` ${summary(event).slice(0, 200)}`,
      ),
      event.hasDelta
        ? el('span', { class: 'changes-mark', title: 'changes state' }, `Δ${event.delta.length}`)
        : '',
    )
  }

  async eventPanel(event) {
    const { store } = this.app
    const peer = event.peer ? ` ${ARROWS[event.kind] ?? '·'} ${event.peer}` : ''
    const cause = await store.bySeq(event.cause)
    const parts = [
      el('h2', {}, `${event.kind} ${event.actor}${peer}`),
      el(
        'p',
        { class: 'facts' },
        `#${event.seq} · ${formatTime(event.timeUs)} s`,
        event.type ? el('b', {}, ` · ${event.type}`) : '',
        event.message === null ? '' : ` · message ${event.message}`,
        event.why ? el('em', {}, ` · ${event.why}`) : '',
      ),
    ]
    const other = this.app.counterpart
    if (other) parts.push(...this.difference(event, other))
    if (event.hasDelta) parts.push(delta(event))
    if (cause) parts.push(el('h3', {}, 'follows from'), this.link(cause))
    if (event.op !== null && event.op !== event.seq) {
      const begin = await store.bySeq(event.op)
      if (begin) parts.push(el('h3', {}, 'belongs to the operation'), this.link(begin))
    }
    const fields = Object.entries(event.fields)
    if (fields.length) parts.push(el('h3', {}, 'payload'), ...fields.map(([k, v]) => tree(k, v)))
    return parts
  }

  /** A table of the differences from the other run's event. */
  difference(event, other) {
    const rows = []
    const add = (name, left, right) => {
      if (JSON.stringify(left) !== JSON.stringify(right))
        rows.push(
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, name),
            el('td', { class: 'old' }, word(left)),
            el('td', { class: 'new' }, word(right)),
          ),
        )
    }
    add('time', formatTime(event.timeUs), formatTime(other.timeUs))
    for (const name of ['kind', 'actor', 'peer', 'type', 'why', 'cause'])
      add(name, event[name], other[name])
    for (const name of new Set([...Object.keys(event.fields), ...Object.keys(other.fields)]))
      add(name, event.fields[name], other.fields[name])
    add('state', event.delta, other.delta)
    return rows.length
      ? [
          el('h3', {}, 'what differs'),
          el(
            'table',
            { class: 'delta' },
            el(
              'thead',
              {},
              el(
                'tr',
                {},
                ...['', 'run A', 'run B'].map((name) => el('th', { scope: 'col' }, name)),
              ),
            ),
            el('tbody', {}, rows),
          ),
        ]
      : [el('p', { class: 'quiet' }, 'The same in both runs.')]
  }

  toggle(text, key) {
    return el(
      'label',
      { class: 'toggle' },
      el('input', {
        type: 'checkbox',
        ...(this[key] ? { checked: true } : {}),
        change: (event) => {
          this[key] = event.target.checked
          this.show()
        },
      }),
      text,
    )
  }

  async whyPanel(event) {
    const chain = await why(this.app.store, event, !this.everyStep)
    if (this.app.chosen === event) this.app.showChain(chain)
    const links = chain.map((cause, i) => this.link(cause, 0, i ? 'because ' : ''))
    return [
      el('h2', {}, 'Why it happened'),
      this.toggle('every step', 'everyStep'),
      el('div', { class: 'links' }, links),
    ]
  }

  async effectsPanel(event, isOld) {
    const { rows, isWhole } = await effects(this.app.store, event, isOld)
    const text = rows.length
      ? `${rows.length}${isWhole ? '' : ' and more'} events`
      : 'Nothing followed.'
    return [
      el('h2', {}, 'What it led to'),
      el('p', { class: 'quiet' }, text),
      el(
        'div',
        { class: 'links' },
        rows.map(([other, depth]) => this.link(other, depth)),
      ),
    ]
  }

  async statePanel(event) {
    const state = await this.app.stateOfChosen()
    const changed = new Set(event.delta.map(([path]) => path))
    const actors = [...new Set([...state.keys()].map((path) => path.split('/')[0]))]
    const actor = this.app.inspected ?? event.actor
    const paths = [...state.keys()].filter((path) => path.startsWith(`${actor}/`))
    for (const path of changed)
      if (path.startsWith(`${actor}/`) && !state.has(path)) paths.push(path)
    const shown = paths.filter((path) => !this.showsOnlyChanged || changed.has(path))
    const rows = shown.slice(0, STATE_MAX).map((path) => {
      const [value, seq] = state.get(path) ?? [null, event.seq]
      const short = path.slice(actor.length + 1)
      return el(
        'tr',
        { class: changed.has(path) ? 'changed' : '' },
        el('th', { scope: 'row' }, short),
        el('td', {}, word(value)),
        el(
          'td',
          {},
          el(
            'button',
            {
              class: 'seq',
              title: 'the event that set it',
              'aria-label': `event ${seq}, which set ${short}`,
              click: () => this.app.goToSeq(seq),
            },
            `#${seq}`,
          ),
        ),
      )
    })
    const choice = el(
      'select',
      {
        'aria-label': 'Actor',
        change: () => {
          this.app.inspected = choice.value
          this.show()
        },
      },
      [...new Set([actor, ...actors])].map((name) =>
        el('option', { value: name, ...(name === actor ? { selected: true } : {}) }, name),
      ),
    )
    return [
      el('h2', {}, 'State after it'),
      el('div', { class: 'choices' }, choice, this.toggle('only what changed', 'showsOnlyChanged')),
      el('table', { class: 'state' }, el('tbody', {}, rows)),
      shown.length > STATE_MAX
        ? el('p', { class: 'quiet' }, `${shown.length - STATE_MAX} more`)
        : '',
      shown.length ? '' : el('p', { class: 'quiet' }, 'No state is known of this actor here.'),
    ]
  }
}

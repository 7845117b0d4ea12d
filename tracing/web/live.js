// The controls of a running simulation behind the page: steps, breakpoints, faults.

import { byId, el, notice } from './dom.js'
import { inflate } from './store.js'

/** Fetches parts of the trace from the running simulation. */
class LiveParts {
  constructor(headers) {
    this.headers = headers
  }

  async packed(part) {
    const answer = await fetch(`part/${part}`, { headers: this.headers })
    if (!answer.ok) throw new Error((await answer.json()).error)
    return new Uint8Array(await answer.arrayBuffer())
  }

  async read(part) {
    return inflate(await this.packed(part))
  }
}

export class Live {
  constructor() {
    const token = new URLSearchParams(location.search).get('token') ?? ''
    this.headers = { Authorization: `Bearer ${token}` }
    this.parts = new LiveParts(this.headers)
    this.isBusy = false
  }

  show(app) {
    this.app = app
    const button = (id, text, title, action) => el('button', { id, title, click: action }, text)
    this.condition = el('input', {
      id: 'breakpoint',
      type: 'text',
      spellcheck: 'false',
      autocomplete: 'off',
      'aria-label': 'Breakpoint',
      placeholder: 'crash of broker-1 · change broker-*/orders-0/isr · at 9.5s',
      keydown: (event) => {
        if (event.key === 'Enter') this.run()
      },
    })
    this.faults = el('span', { class: 'group', id: 'faults' })
    const box = byId('live')
    box.hidden = false
    box.append(
      el('b', {}, 'live'),
      button('back', '◀ back', 'one event back (←)', () => app.move(-1)),
      button('step', 'step ▶', 'one event on (→)', () => this.post('step', { count: 1 })),
      button('step-100', '+100', 'a hundred events on', () => this.post('step', { count: 100 })),
      button('run-for', '+1 s', 'a virtual second on', () => this.post('run_for', { ms: 1000 })),
      this.condition,
      button('run', 'run to it', 'to the first event after this one that meets it', () =>
        this.run(),
      ),
      this.faults,
      button('scenario', 'scenario', 'the scenario of this run, with what was done to it', () =>
        this.showScenario(),
      ),
    )
  }

  run() {
    this.post('run', { until: this.condition.value.trim() })
  }

  async ask(verb, asked) {
    const answer = await fetch(verb, {
      method: 'POST',
      headers: this.headers,
      body: JSON.stringify({ ...asked, seq: this.app.chosen?.seq ?? 0 }),
    })
    const told = await answer.json()
    if (!answer.ok) throw new Error(told.error)
    return told
  }

  /** Sends a command that advances the run, and shows the event at which it then stands. */
  async post(verb, asked) {
    if (this.isBusy) return
    this.isBusy = true
    byId('live').setAttribute('aria-busy', 'true')
    try {
      const told = await this.ask(verb, asked)
      await this.app.grow(told.seq)
      if (told.note) notice(told.note)
    } catch (error) {
      notice(error.message, true)
    } finally {
      this.isBusy = false
      byId('live').removeAttribute('aria-busy')
    }
  }

  async showScenario() {
    try {
      const { note } = await this.ask('scenario', {})
      const close = el('button', { click: () => byId('keys').close() }, 'close')
      byId('keys').replaceChildren(el('h2', {}, 'Scenario'), el('pre', {}, note), close)
      byId('keys').showModal()
    } catch (error) {
      notice(error.message, true)
    }
  }

  /** Makes the buttons for faults of each broker at the chosen event. */
  tell() {
    const { chosen, lanes, outages } = this.app
    const brokers = lanes.names.filter((name) => /^broker-\d+$/.test(name))
    const act = (action, args) => () => this.post('act', { action, arguments: args })
    const buttons = brokers.map((name) => {
      const broker = Number(name.slice(7))
      const spans = outages.get(lanes.index(name)) ?? []
      const isDown = spans.some(([from, to]) => from <= chosen.seq && chosen.seq < to)
      const action = isDown ? 'start' : 'kill'
      return el(
        'button',
        {
          class: isDown ? 'good' : 'bad',
          id: `${action}-${broker}`,
          title: `${action} broker ${broker} at this event`,
          click: act(action, { broker }),
        },
        `${action} ${broker}`,
      )
    })
    const isolate = brokers.map((name) => {
      const broker = Number(name.slice(7))
      const title = `cut broker ${broker} off from all others at this event`
      return el(
        'button',
        { title, click: act('isolate', { machine: broker }) },
        `isolate ${broker}`,
      )
    })
    const heal = el('button', { title: 'join what is cut', click: act('heal', {}) }, 'heal')
    this.faults.replaceChildren(...buttons, ...isolate, heal)
  }
}

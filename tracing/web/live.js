// The controls of a running simulation: steps, breakpoints, faults. Its trace grows as it runs.

import { byId, el, notice } from './dom.js'

/** Parts of the trace of a simulation behind this page. */
export class LiveParts {
  constructor(live) {
    this.live = live
  }

  async read(part) {
    const answer = await fetch(`part/${part}?${this.live.version}`, { headers: this.live.headers })
    if (!answer.ok) throw new Error(await answer.text())
    return new Uint8Array(await answer.arrayBuffer())
  }
}

export class Live {
  constructor() {
    const token = new URLSearchParams(location.search).get('token') ?? ''
    this.headers = { Authorization: `Bearer ${token}` }
    this.version = 0
    this.parts = new LiveParts(this)
    this.isBusy = false
  }

  async show(app) {
    this.app = app
    const box = byId('live')
    box.hidden = false
    this.where = el('output', { id: 'live-position', 'aria-live': 'polite' })
    this.condition = el('input', {
      id: 'breakpoint',
      type: 'text',
      spellcheck: 'false',
      'aria-label': 'Breakpoint',
      placeholder: 'type == LeaderAndIsrRequest, or 9.5s',
      keydown: (event) => event.key === 'Enter' && this.run(),
    })
    const button = (text, title, action) => el('button', { title, click: action }, text)
    this.faults = el('span', { class: 'group', id: 'faults' })
    box.append(
      el('b', {}, 'live'),
      this.where,
      button('◀ back', 'take the last event back (runs again up to it)', () =>
        this.post('back', {}),
      ),
      button('step ▶', 'handle one event', () => this.post('step', { count: 1 })),
      button('+100', 'handle a hundred events', () => this.post('step', { count: 100 })),
      button('+1 s', 'run for a virtual second', () => this.post('run', { for_ms: 1000 })),
      this.condition,
      button('run to it', 'run to the first event for which this holds, or to this time', () =>
        this.run(),
      ),
      button('return here', 'go back to the chosen event, and go on from there', () =>
        this.post('back', { seq: app.chosen?.seq ?? 0 }),
      ),
      this.faults,
    )
    this.tell(await this.ask('position'))
  }

  run() {
    const text = this.condition.value.trim()
    if (text) this.post('run', { until: text })
  }

  async ask(path, body) {
    const options = { headers: this.headers }
    if (body) Object.assign(options, { method: 'POST', body: JSON.stringify(body) })
    const answer = await fetch(path, options)
    const told = await answer.json()
    if (!answer.ok) throw new Error(told.error)
    return told
  }

  async post(path, body) {
    if (this.isBusy) return
    this.isBusy = true
    byId('live').setAttribute('aria-busy', 'true')
    try {
      const told = await this.ask(path, body)
      this.version += 1
      this.tell(told)
      await this.app.grow()
      if (told.note) notice(told.note)
    } catch (error) {
      notice(error.message, true)
    } finally {
      this.isBusy = false
      byId('live').removeAttribute('aria-busy')
    }
  }

  tell(position) {
    this.where.textContent = `#${position.seq} · ${(position.time_us / 1e6).toFixed(6)} s`
    this.faults.replaceChildren(
      ...position.brokers.map(({ id, is_alive: isAlive }) =>
        el(
          'button',
          {
            class: isAlive ? 'bad' : 'good',
            title: isAlive ? `kill broker ${id}` : `start broker ${id}`,
            click: () => this.post('act', { action: isAlive ? 'kill' : 'start', broker: id }),
          },
          `${isAlive ? 'kill' : 'start'} ${id}`,
        ),
      ),
      ...position.brokers.map(({ id }) =>
        el(
          'button',
          {
            title: `cut broker ${id} off from the others`,
            click: () => this.post('act', { action: 'isolate', broker: id }),
          },
          `isolate ${id}`,
        ),
      ),
      el(
        'button',
        {
          class: 'good',
          title: 'join what is cut',
          click: () => this.post('act', { action: 'heal' }),
        },
        'heal',
      ),
    )
  }
}

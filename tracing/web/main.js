// The page's state: the chosen event, the filter, the address. The parts that draw read it here.

import { happensBefore } from './causes.js'
import { Lanes, outagesOf, shortName } from './diagram.js'
import { byId, el, forgetColours, notice } from './dom.js'
import { EventList } from './event_list.js'
import { Finder } from './finder.js'
import { handleKey, showKeys } from './keys.js'
import { Live } from './live.js'
import { Minimap } from './minimap.js'
import { Panels } from './panels.js'
import { Partitions } from './partitions.js'
import { PairRows, Rows } from './rows.js'
import { serveScans } from './scanner.js'
import { EmbeddedParts, Store } from './store.js'
import { formatCount, formatTime, INTERESTING } from './text.js'

const PLAY_MS = 350

class App {
  constructor(settings, live) {
    Object.assign(this, { settings, live, shortName })
    this.place = 0
    this.chosen = this.counterpart = this.inspected = this.pairs = null
    this.chosenRow = 0
    this.chain = new Set()
    this.order = null
    this.showsOrder = true
    this.isTimed = false
    this.filterText = ''
    this.rounds = 0
    this.finder = new Finder(this)
  }

  async open() {
    this.stores = []
    for (const name of this.settings.traces) {
      const store = new Store(this.live ? this.live.parts : new EmbeddedParts(name))
      await store.open()
      store.name = name
      store.overview = await store.readJson('overview')
      this.stores.push(store)
    }
    this.list = new EventList(
      {
        scroller: byId('events'),
        spacer: byId('spacer'),
        window: byId('window'),
        canvas: byId('canvas'),
        rowsBox: byId('rows'),
        lanesBox: byId('lanes'),
      },
      this.use(this.stores[0]),
    )
    this.minimap = new Minimap(byId('minimap'), this)
    this.panels = new Panels(this)
    this.partitions = new Partitions(byId('partitions'), this)
    this.listen()
    await this.showViews()
    if (this.live) this.live.show(this)
    await this.readAddress()
    document.documentElement.dataset.ready = 'yes'
  }

  /** Makes a run the current one. */
  use(store) {
    this.store = store
    this.overview = store.overview
    this.lanes = new Lanes(store.actors)
    this.outages = outagesOf(store.overview.marks, this.lanes)
    this.rows = new Rows(store)
    byId('title').textContent = store.title
    byId('title').title = store.header.reproduce ?? ''
    if (store.problem) notice(store.problem, true)
    return this
  }

  async showViews() {
    if (this.stores.length < 2) return
    const views = [
      ['compare', null],
      ['A', this.stores[0]],
      ['B', this.stores[1]],
    ]
    byId('views').replaceChildren(
      ...views.map(([name, store]) =>
        el(
          'button',
          {
            id: `view-${name}`,
            title: store?.title ?? this.settings.comparison.text,
            click: () => this.view(store),
          },
          name,
        ),
      ),
    )
    await this.view(null)
  }

  async view(store) {
    const seq = this.chosen?.seq
    this.pairs = store ? null : new PairRows(...this.stores, this.settings.comparison)
    this.use(store ?? this.stores[0])
    const names = { compare: null, A: this.stores[0], B: this.stores[1] }
    for (const [name, other] of Object.entries(names))
      byId(`view-${name}`).setAttribute('aria-pressed', String(other === store))
    this.counterpart = null
    this.list.layout()
    if (store) await this.goToSeq(Math.min(seq ?? 0, store.lastSeq))
    else await this.choose(this.pairs.equal, { isRow: true })
  }

  // -- choosing an event -----------------------------------------------------------------------

  /** Chooses the event at a place, or at a row of the comparison. */
  async choose(place, { isRow = false, stays = false } = {}) {
    const round = ++this.rounds
    let store = this.store,
      at = place
    if (isRow) {
      this.chosenRow = Math.min(Math.max(place, 0), this.pairs.length - 1)
      const [, left, right] = this.pairs.pair(this.chosenRow)
      store = left === null ? this.stores[1] : this.stores[0]
      at = left ?? right
      this.counterpart = left !== null && right !== null ? await this.stores[1].event(right) : null
    }
    if (at === null || !store.length) return
    const event = await store.event(Math.min(Math.max(at, 0), store.length - 1))
    if (round !== this.rounds || !event) return
    if (isRow && store !== this.store) this.use(store)
    this.place = at
    this.chosen = event
    this.chain = new Set()
    this.state = null
    this.orderAgain()
    if (stays) this.list.draw()
    else this.list.reveal()
    this.tell()
    const state = await this.stateOfChosen()
    if (round !== this.rounds) return
    this.partitions.show(state, event)
    await this.panels.show()
    if (round === this.rounds) document.documentElement.dataset.shown = String(event.seq)
  }

  orderAgain() {
    this.order = this.chosen && !this.pairs ? happensBefore(this.store, this.place) : null
  }

  stateOfChosen() {
    this.state ??= this.store.stateAt(this.chosen.seq)
    return this.state
  }

  showChain(chain) {
    this.chain = new Set(chain.map((event) => event.seq))
    this.list.draw()
  }

  tell() {
    const { chosen, store } = this
    const of = `of ${formatCount(store.length)}`
    byId('position').textContent = `#${chosen.seq} ${of} · ${formatTime(chosen.timeUs)} s`
    const mark = this.overview.marks.findLast(([seq]) => seq <= chosen.seq)
    const isNow = mark?.[0] === chosen.seq
    const kinds = { note: '' }
    const [, us, kind, actor, text] = mark ?? []
    byId('caption').textContent = mark
      ? `${isNow ? '▸ ' : ''}${formatTime(us)} s  ${actor}: ${kinds[kind] ?? `${kind}: `}${text}`
      : ''
    byId('caption').classList.toggle('now', isNow)
    this.minimap.draw()
    this.live?.tell()
    clearTimeout(this.addressTimer)
    this.addressTimer = setTimeout(() => this.writeAddress(), 150)
  }

  async goToSeq(seq) {
    await this.store.chunk(this.store.chunkOfSeq(seq))
    await this.choose(this.store.placeOf(seq))
  }

  async goToTime(timeUs) {
    await this.choose(await this.store.placeAt(timeUs))
  }

  // -- moving ----------------------------------------------------------------------------------

  move(by) {
    if (this.pairs) return this.choose(this.chosenRow + by, { isRow: true })
    const { rows, store } = this
    if (this.live && by > 0 && this.place === store.length - 1)
      return this.live.post('step', { count: by })
    let row = rows.row(this.place)
    const isShown = rows.place(row) === this.place
    if (isShown || by < 0) row += by
    return this.choose(rows.place(Math.min(Math.max(row, 0), rows.length - 1)))
  }

  seek(direction, filter) {
    return this.finder.seek(direction, filter)
  }

  find(direction) {
    return this.finder.find(direction)
  }

  seekLane(direction) {
    const { actor } = this.chosen
    return this.seek(direction, { test: (event) => event.actor === actor, required: { actor } })
  }

  seekMark(direction) {
    const { marks } = this.overview
    const isWanted = ([seq, , kind]) =>
      INTERESTING.has(kind) && (direction > 0 ? seq > this.chosen.seq : seq < this.chosen.seq)
    const mark = direction > 0 ? marks.find(isWanted) : marks.findLast(isWanted)
    return mark ? this.goToSeq(mark[0]) : notice('there is none')
  }

  async goToCause() {
    const cause = await this.store.bySeq(this.chosen.cause)
    return cause ? this.goToSeq(cause.seq) : notice('this event is where its chain begins')
  }

  goToEffect() {
    const { seq } = this.chosen
    return this.seek(1, { test: (event) => event.cause === seq, required: {} })
  }

  async goToLastChange() {
    for (const [path] of this.chosen.delta) {
      const change = await this.store.lastChange(path, this.chosen.seq - 1)
      if (change) {
        notice(`${path} was set here`)
        return this.goToSeq(change.event.seq)
      }
    }
    return notice('this event changes nothing that was set before')
  }

  play() {
    const isOn = !this.timer
    byId('play').setAttribute('aria-pressed', String(isOn))
    byId('play').textContent = isOn ? 'stop' : 'play'
    clearInterval(this.timer)
    this.timer = isOn ? setInterval(() => this.move(1), PLAY_MS) : null
  }

  // -- filter, positions ------------------------------------------------------------------------

  setFilter(text) {
    return this.finder.setFilter(text)
  }

  askWhere() {
    const text = prompt('Go to an event (#1234) or a time (9.5s)')?.trim()
    if (text) this.goTo(text)
  }

  goTo(text) {
    const number = /^#?(\d+)$/.exec(text)
    if (number) return this.goToSeq(Math.min(Number(number[1]), this.store.lastSeq))
    const time = /^(\d+(?:\.\d+)?)(us|ms|s|min)$/.exec(text)
    if (!time) return notice(`${text} is no event and no time`, true)
    return this.goToTime(Number(time[1]) * { us: 1, ms: 1e3, s: 1e6, min: 6e7 }[time[2]])
  }

  // -- a running simulation --------------------------------------------------------------------

  /** Loads the events that a running simulation has added, and shows an event. */
  async grow(seq) {
    const { store } = this
    await store.reopen()
    this.finder.forget()
    store.overview = await store.readJson('overview')
    this.use(store)
    if (this.filterText) await this.setFilter(this.filterText)
    this.list.layout()
    await this.goToSeq(seq)
  }

  // -- the address, keys -----------------------------------------------------------------------

  writeAddress() {
    if (!this.chosen) return
    const hash = new URLSearchParams({ s: this.chosen.seq })
    if (this.filterText) hash.set('f', this.filterText)
    if (this.isTimed) hash.set('t', '1')
    if (this.panels.tab !== 'Event') hash.set('p', this.panels.tab)
    if (`#${hash}` !== location.hash) history.replaceState(null, '', `#${hash}`)
  }

  /** Shows the event, filter and tab in an address, which `location` may no longer have. */
  async readAddress(address = location.href) {
    clearTimeout(this.addressTimer)
    const hash = new URLSearchParams(new URL(address).hash.slice(1))
    if (hash.get('p'))
      this.panels.tab = hash.get('p') in { Why: 1, Effects: 1, State: 1 } ? hash.get('p') : 'Event'
    if (hash.get('t')) this.setTimed(true)
    this.list.layout()
    const first = this.overview.marks.find(
      ([, , kind]) => kind === 'crash' || kind === 'fault',
    )?.[0]
    const seq = Number(hash.get('s') ?? first ?? this.store.chunks[0]?.first ?? 0)
    if (!this.pairs && this.store.length) await this.goToSeq(Math.min(seq || 0, this.store.lastSeq))
    if (hash.get('f')) await this.setFilter(hash.get('f'))
  }

  setTimed(isTimed) {
    this.isTimed = isTimed
    byId('axis').setAttribute('aria-pressed', String(isTimed))
    this.list.layout()
    if (this.chosen) this.list.reveal()
    this.writeAddress()
  }

  setTheme() {
    const root = document.documentElement
    const isDark = root.dataset.theme
      ? root.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches
    root.dataset.theme = isDark ? 'light' : 'dark'
    this.redraw()
  }

  redraw() {
    forgetColours()
    this.list.draw()
    this.minimap.draw()
    if (this.chosen) this.stateOfChosen().then((state) => this.partitions.show(state, this.chosen))
  }

  listen() {
    const on = (id, action) => byId(id).addEventListener('click', action)
    on('previous', () => this.move(-1))
    on('next', () => this.move(1))
    on('play', () => this.play())
    on('axis', () => this.setTimed(!this.isTimed))
    on('past', () => this.toggleOrder())
    on('theme', () => this.setTheme())
    on('help', () => showKeys())
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw())
    byId('filter-form').addEventListener('submit', (event) => event.preventDefault())
    byId('filter').addEventListener('input', () => {
      clearTimeout(this.filterTimer)
      this.filterTimer = setTimeout(() => this.setFilter(byId('filter').value), 250)
    })
    byId('search').addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.find(event.shiftKey ? -1 : 1)
    })
    addEventListener('hashchange', (event) => this.readAddress(event.newURL))
    addEventListener('keydown', (event) => handleKey(this, event))
  }

  toggleOrder() {
    this.showsOrder = !this.showsOrder
    byId('past').setAttribute('aria-pressed', String(this.showsOrder))
    this.list.draw()
  }

  async copy() {
    const text = this.store.header.reproduce ?? ''
    try {
      await navigator.clipboard.writeText(text)
      notice(`copied: ${text}`)
    } catch {
      notice(text)
    }
  }
}

function openPage() {
  const settings = JSON.parse(byId('settings').textContent)
  const app = new App(settings, settings.live ? new Live() : null)
  app.open().catch((error) => {
    notice(`This trace cannot be shown: ${error.message}`, true)
    throw error
  })
}

// The page's worker runs the same script.
if (typeof document === 'undefined') serveScans()
else openPage()

// The list of events beside the diagram; only the part in view is drawn.

import { el, sharpen } from './dom.js'
import { drawDiagram } from './diagram.js'
import { formatTime, summary, whoText } from './text.js'

export const ROW_PX = 22
const HEIGHT_MAX_PX = 16_000_000
const ITEMS_MAX = 2500
const BEYOND = 200
const LABEL_PX = 20
const NARROW_LANE_PX = 24

export class EventList {
  constructor(elements, app) {
    Object.assign(this, elements)
    this.app = app
    this.pxPerUs = 0.02
    this.rowElements = []
    this.pending = false
    this.scroller.addEventListener('scroll', () => this.draw())
    new ResizeObserver(() => this.layout()).observe(this.scroller)
    this.rowsBox.addEventListener('click', (event) => this.clicked(event))
    this.canvas.addEventListener('click', (event) => this.hit(event))
    this.scroller.addEventListener('wheel', (event) => this.wheel(event), { passive: false })
  }

  get isTimed() {
    return this.app.isTimed && !this.app.pairs
  }

  get height() {
    const { store, rows, pairs } = this.app
    if (!this.isTimed) return (pairs ?? rows).length * ROW_PX
    return this.spanUs(store) * this.pxPerUs + 40
  }

  spanUs(store) {
    return (store.chunks.at(-1)?.to_us ?? 0) - (store.chunks[0]?.from_us ?? 0)
  }

  layout() {
    const { clientWidth, clientHeight } = this.scroller
    const { lanes, pairs } = this.app
    const count = lanes.names.length
    const wanted = Math.min(Math.max((clientWidth * 0.42) / count, 22), 76)
    this.laneWidth = Math.max(Math.min(wanted, (clientWidth - 180) / count), 12)
    this.diagramWidth = pairs ? 0 : Math.round(this.laneWidth * count)
    this.viewHeight = clientHeight
    this.spacer.style.height = `${Math.min(this.height, HEIGHT_MAX_PX)}px`
    this.window.style.height = `${clientHeight}px`
    this.window.style.marginTop = `${-Math.min(this.height, HEIGHT_MAX_PX)}px`
    this.rowsBox.style.left = `${this.diagramWidth}px`
    this.lanesBox.classList.toggle('narrow', this.laneWidth < NARROW_LANE_PX)
    this.lanesBox.replaceChildren(...(pairs ? [] : this.laneHeads()))
    this.draw()
  }

  /** Makes room for rows that were added at the end. */
  grow() {
    this.spacer.style.height = `${Math.min(this.height, HEIGHT_MAX_PX)}px`
    this.window.style.marginTop = `${-Math.min(this.height, HEIGHT_MAX_PX)}px`
    this.draw()
  }

  laneHeads() {
    const { lanes, shortName } = this.app
    return lanes.names.map((actor) =>
      el(
        'button',
        {
          title: `${actor}: show only this lane`,
          'aria-label': `only ${actor}`,
          style: { width: `${this.laneWidth}px` },
          click: () => this.app.setFilter(`actor == "${actor}"`),
        },
        shortName(actor),
      ),
    )
  }

  /** Number of pixels of the whole picture that are above the view. */
  get top() {
    const { scrollTop } = this.scroller
    if (this.height <= HEIGHT_MAX_PX) return scrollTop
    return (scrollTop / (HEIGHT_MAX_PX - this.viewHeight)) * (this.height - this.viewHeight)
  }

  scrollToPx(px) {
    const whole = Math.max(Math.min(px, this.height - this.viewHeight), 0)
    const isScaled = this.height > HEIGHT_MAX_PX
    this.scroller.scrollTop = isScaled
      ? (whole / (this.height - this.viewHeight)) * (HEIGHT_MAX_PX - this.viewHeight)
      : whole
  }

  /** Scrolls the chosen event to a third from the top, unless it is already in view. */
  reveal() {
    const { chosen, pairs, chosenRow } = this.app
    if (!chosen && !pairs) return
    let px = (pairs ? chosenRow : this.app.rows.row(this.app.place)) * ROW_PX
    if (this.isTimed) px = (chosen.timeUs - this.app.store.chunks[0].from_us) * this.pxPerUs
    const above = px - this.top
    if (above < ROW_PX || above > this.viewHeight - 2 * ROW_PX)
      this.scrollToPx(px - this.viewHeight / 3)
    this.draw()
  }

  wheel(event) {
    if (!event.ctrlKey || !this.isTimed) return
    event.preventDefault()
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.offsetY)
  }

  /** Stretches or shrinks the time axis; the moment at `y` stays in place. */
  zoom(factor, y = this.viewHeight / 3) {
    if (!this.isTimed) return
    const us = (this.top + y) / this.pxPerUs
    this.pxPerUs = Math.min(Math.max(this.pxPerUs * factor, 1e-6), 5)
    this.layout()
    this.scrollToPx(us * this.pxPerUs - y)
    this.draw()
  }

  draw() {
    if (this.pending) return
    this.pending = true
    requestAnimationFrame(() => {
      this.pending = false
      if (this.app.pairs) this.drawPairs()
      else this.drawNow()
    })
  }

  drawNow() {
    const { app } = this
    const items = this.isTimed ? this.timedItems() : this.orderedItems()
    this.items = items
    this.drawRows(items.filter((item) => !item.isBeyond))
    const size = { width: this.diagramWidth, height: this.viewHeight }
    const context = sharpen(this.canvas, size.width, size.height)
    drawDiagram(context, size, {
      items,
      lanes: app.lanes,
      laneWidth: this.laneWidth,
      outages: app.outages,
      chosen: app.chosen?.seq ?? -1,
      chain: app.chain,
      order: app.showsOrder ? app.order : null,
      yOf: (seq) => this.yOf(seq),
    })
  }

  yOf(seq) {
    const { store, rows } = this.app
    const place = store.placeOf(seq)
    if (!this.isTimed) return (rows.row(place) + 0.5) * ROW_PX - this.top
    const event = store.at(place)
    const chunk = store.chunks[store.chunkOfPlace(place)]
    return this.yOfTime(event ? event.timeUs : chunk.from_us)
  }

  yOfTime(us) {
    return (us - this.app.store.chunks[0].from_us) * this.pxPerUs + 20 - this.top
  }

  /** One row for each event, also for some below the view: their arrows may reach into it. */
  orderedItems() {
    const { store, rows } = this.app
    const first = Math.max(Math.floor(this.top / ROW_PX), 0)
    const last = Math.min(first + Math.ceil(this.viewHeight / ROW_PX) + 1, rows.length)
    const items = []
    for (let row = first; row < Math.min(last + BEYOND, rows.length); row++) {
      const place = rows.place(row)
      const event = store.at(place)
      const y = (row + 0.5) * ROW_PX - this.top
      if (event) items.push({ event, place, y, isBeyond: row >= last })
      else if (row < last) {
        this.load(store, place)
        items.push({ event: null, place, y, isBeyond: false })
      }
    }
    return items.filter((item) => item.event || !item.isBeyond).map((item) => this.settled(item))
  }

  settled(item) {
    return item.event ? item : { ...item, event: LOADING, isLoading: true }
  }

  /** The events of the time span in view, at most `ITEMS_MAX`. */
  timedItems() {
    const { store, rows } = this.app
    const startUs = store.chunks[0].from_us + (this.top - 20) / this.pxPerUs
    const endUs = startUs + this.viewHeight / this.pxPerUs
    const chunk = store.chunkBy((c) => c.from_us, startUs - 1)
    const items = []
    for (let row = rows.row(store.chunks[chunk].place); row < rows.length; row++) {
      const place = rows.place(row)
      const event = store.at(place)
      if (!event) {
        this.load(store, place)
        break
      }
      if (event.timeUs > endUs || items.length >= ITEMS_MAX) break
      if (event.timeUs >= startUs) items.push({ event, place, y: this.yOfTime(event.timeUs) })
    }
    return items
  }

  load(store, place) {
    const index = store.chunkOfPlace(place)
    if (store.loading.has(index)) return
    store.chunk(index).then(() => {
      this.app.orderAgain()
      this.draw()
    })
  }

  drawRows(items) {
    let bottom = -Infinity,
      used = 0
    for (const item of items) {
      if (item.y - bottom < LABEL_PX && item.event.seq !== this.app.chosen?.seq) continue
      bottom = item.y
      this.fillRow(this.rowElement(used++), item)
    }
    this.rest(used)
  }

  rest(used) {
    for (let i = used; i < this.rowElements.length; i++) this.rowElements[i].hidden = true
  }

  rowElement(i) {
    if (!this.rowElements[i]) {
      const parts = ['seq', 'time', 'kind', 'who', 'type', 'what'].map((name) =>
        el('span', { class: name }),
      )
      this.rowElements[i] = el('div', { class: 'row', role: 'option' }, parts)
      this.rowsBox.append(this.rowElements[i])
    }
    this.rowElements[i].hidden = false
    return this.rowElements[i]
  }

  fillRow(element, { event, place, y }) {
    const isChosen = event.seq === this.app.chosen?.seq
    element.place = place
    element.style.transform = `translateY(${Math.round(y - ROW_PX / 2)}px)`
    element.className = `row kind-${event.kind}${this.app.chain.has(event.seq) ? ' marked' : ''}`
    element.setAttribute('aria-selected', String(isChosen))
    element.id = isChosen ? 'chosen-row' : ''
    if (element.shows === event) return
    element.shows = event
    const [seq, time, kind, who, type, what] = element.children
    seq.textContent = event === LOADING ? '' : `#${event.seq}`
    time.textContent = event === LOADING ? '' : formatTime(event.timeUs)
    kind.textContent = event.kind
    who.textContent = whoText(event)
    type.textContent = event.type ?? ''
    what.textContent = event === LOADING ? 'reading…' : summary(event).slice(0, 300)
    element.classList.toggle('changes', event.hasDelta)
  }

  drawPairs() {
    const { pairs, stores, chosenRow } = this.app
    const first = Math.max(Math.floor(this.top / ROW_PX), 0)
    const last = Math.min(first + Math.ceil(this.viewHeight / ROW_PX) + 1, pairs.length)
    sharpen(this.canvas, 0, 0)
    let used = 0
    for (let row = first; row < last; row++) {
      const [mark, left, right] = pairs.pair(row)
      const events = [left, right].map((place, i) => {
        if (place === null) return null
        const event = stores[i].at(place)
        if (!event) this.load(stores[i], place)
        return event ?? LOADING
      })
      const sign = mark === '~' && isEqual(...events) ? ' ' : mark
      const element = this.rowElement(used++)
      element.shows = null
      element.place = row
      element.style.transform = `translateY(${Math.round(row * ROW_PX - this.top)}px)`
      const marks = {
        ' ': 'same',
        '~': 'differs',
        '-': 'left-only',
        '+': 'right-only',
        '?': 'after',
      }
      element.className = `row pair ${marks[sign]}`
      element.setAttribute('aria-selected', String(row === chosenRow))
      const [seq, time, kind, who, type, what] = element.children
      seq.textContent = sign
      who.textContent = halfText(events[0])
      what.textContent = halfText(events[1])
      time.textContent = kind.textContent = type.textContent = ''
    }
    this.rest(used)
  }

  clicked(event) {
    const row = event.target.closest('.row')
    if (row) this.app.choose(row.place, { isRow: Boolean(this.app.pairs), stays: true })
  }

  hit(event) {
    const near = (item) =>
      Math.hypot(
        (this.app.lanes.index(item.event.actor) + 0.5) * this.laneWidth - event.offsetX,
        item.y - event.offsetY,
      )
    const found = this.items.filter((item) => !item.isLoading && !item.isBeyond)
    if (!found.length) return
    const nearest = found.reduce((best, item) => (near(item) < near(best) ? item : best))
    if (near(nearest) < 40) this.app.choose(nearest.place, { stays: true })
  }
}

const LOADING = {
  seq: -1,
  timeUs: 0,
  kind: '',
  actor: '',
  peer: null,
  type: null,
  delta: [],
  fields: {},
  hasDelta: false,
  cause: null,
}

/** Whether the two events of a pair have the same time and summary. */
function isEqual(left, right) {
  if (left === LOADING || right === LOADING) return false
  return left.timeUs === right.timeUs && summary(left) === summary(right)
}

function halfText(event) {
  if (!event) return ''
  if (event === LOADING) return 'reading…'
  const head = `#${event.seq} ${formatTime(event.timeUs)} ${event.kind} ${whoText(event)}`
  return `${head} ${event.type ?? ''} ${summary(event).slice(0, 160)}`
}

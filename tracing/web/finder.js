// The filter of the list, and the search for the next event.

import { byId, notice } from './dom.js'
import { compileFilter, scan } from './filter.js'
import { Rows } from './rows.js'
import { formatCount } from './text.js'

export class Finder {
  constructor(app) {
    this.app = app
    this.filterRound = 0
  }

  /** Chooses the next event, from the chosen one on, for which a test holds. */
  async seek(direction, filter) {
    const { app } = this
    const { store, place } = app
    const round = ++app.rounds
    let index = store.chunkOfPlace(place)
    for (; index >= 0 && index < store.chunks.length; index += direction) {
      if (round !== app.rounds) return false
      if (!store.mayHold(index, filter.required)) continue
      const events = await store.chunk(index)
      const start = store.chunks[index].place
      let i =
        direction > 0 ? Math.max(place - start + 1, 0) : Math.min(place - start, events.length) - 1
      for (; i >= 0 && i < events.length; i += direction)
        if (filter.test(events[i])) {
          await app.choose(start + i)
          return true
        }
    }
    notice('there is none')
    return false
  }

  async setFilter(text) {
    const { app } = this
    app.filterText = byId('filter').value = text
    byId('filter').setCustomValidity('')
    this.filterRound = (this.filterRound ?? 0) + 1
    if (!text.trim() || app.pairs) {
      byId('found').textContent = ''
      app.rows = new Rows(app.store)
      app.list.layout()
      if (app.chosen) app.list.reveal()
      app.writeAddress()
      return
    }
    let filter
    try {
      filter = compileFilter(text, app.store)
    } catch (error) {
      byId('filter').setCustomValidity(error.message)
      byId('found').textContent = error.message
      return
    }
    await this.applyFilter(filter)
    app.writeAddress()
  }

  async applyFilter(filter) {
    const { app } = this
    const round = this.filterRound
    const rows = new Rows(app.store)
    rows.places = []
    app.rows = rows
    let shownAt = performance.now()
    const tell = (index) => {
      const share = Math.round(((index + 1) / app.store.chunks.length) * 100)
      byId('found').textContent =
        `${formatCount(rows.length)} found${share < 100 ? ` (${share} %)` : ''}`
      app.list.layout()
    }
    const found = (places, index) => {
      for (const place of places) rows.places.push(place)
      if (performance.now() - shownAt < 120) return
      shownAt = performance.now()
      tell(index)
    }
    if (!(await scan(app.store, filter, found, () => round !== this.filterRound))) return
    tell(app.store.chunks.length)
    if (app.chosen) app.list.reveal()
  }

  async find(direction) {
    const { app } = this
    const text = byId('search').value.trim()
    if (!text) return byId('search').focus()
    try {
      return await this.seek(direction, compileFilter(text, app.store))
    } catch (error) {
      return notice(error.message, true)
    }
  }
}

// The filter of the list, and the search for the next event.

import { breath, byId, notice } from './dom.js'
import { compileFilter } from './filter.js'
import { Rows } from './rows.js'
import { Scanner } from './scanner.js'
import { formatCount } from './text.js'

export class Finder {
  constructor(app) {
    this.app = app
    this.scanners = new Map()
  }

  /** The scanner that searches a run for the filter or the search. */
  scanner(store, name = 'filter') {
    const key = `${store.name} ${name}`
    if (!this.scanners.has(key)) this.scanners.set(key, new Scanner(store))
    return this.scanners.get(key)
  }

  /** Makes all scanners read their runs anew, as these have gone on. */
  forget() {
    for (const scanner of this.scanners.values()) scanner.forget()
  }

  /** Chooses the nearest event in a direction from the chosen one that passes a test. */
  async seek(direction, filter) {
    const { app } = this
    const { store, place } = app
    const round = ++app.rounds
    let index = store.chunkOfPlace(place)
    for (; index >= 0 && index < store.chunks.length; index += direction) {
      if (round !== app.rounds) return false
      if (!store.mayHold(index, filter.required)) continue
      const events = await store.chunk(index)
      await breath()
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
    this.scanner(app.store).cancel()
    if (!text.trim() || app.pairs) {
      byId('found').textContent = ''
      app.rows = new Rows(app.store)
      app.list.layout()
      if (app.chosen) app.list.reveal()
      app.writeAddress()
      return
    }
    try {
      compileFilter(text, app.store)
      await this.applyFilter(text)
    } catch (error) {
      byId('filter').setCustomValidity(error.message)
      byId('found').textContent = error.message
      return
    }
    app.writeAddress()
  }

  async applyFilter(text) {
    const { app } = this
    const rows = new Rows(app.store)
    rows.places = []
    app.rows = rows
    app.list.layout()
    byId('found').textContent = '0 found (0 %)'
    await this.scanner(app.store).filter(text, (places, part) => {
      for (const place of places) rows.places.push(place)
      const share = Math.floor(part * 100)
      byId('found').textContent =
        `${formatCount(rows.length)} found${share < 100 ? ` (${share} %)` : ''}`
      app.list.grow()
    })
    if (app.chosen && app.rows === rows) app.list.reveal()
  }

  async find(direction) {
    const { app } = this
    const text = byId('search').value.trim()
    if (!text) return byId('search').focus()
    try {
      compileFilter(text, app.store)
      const scanner = this.scanner(app.store, 'search')
      const found = await scanner.next(text, app.place, direction)
      return found === null ? notice('there is none') : await app.choose(found)
    } catch (error) {
      return notice(error.message, true)
    }
  }
}

// Which events the rows of the list show: all, those of a filter, or those of two runs in pairs.

/** Rows of one run. */
export class Rows {
  constructor(store) {
    this.store = store
    this.places = null
  }

  get length() {
    return this.places ? this.places.length : this.store.length
  }

  place(row) {
    return this.places
      ? (this.places[row] ?? null)
      : row < this.store.length && row >= 0
        ? row
        : null
  }

  /** The row that shows a place, or the first one after it. */
  row(place) {
    if (!this.places) return place
    let low = 0,
      high = this.places.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.places[middle] < place) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Rows of two runs: equal ones up to the first difference, then matched ones, then both tails. */
export class PairRows {
  constructor(left, right, comparison) {
    this.left = left
    this.right = right
    this.lines = comparison.lines
    this.equal = comparison.first === null ? left.length : left.placeOf(comparison.first)
    const lastOf = (column) => this.lines.findLast((line) => line[column] !== null)?.[column]
    this.leftTail = this.tailOf(left, lastOf(1))
    this.rightTail = this.tailOf(right, lastOf(2))
    const tail = Math.max(left.length - this.leftTail, right.length - this.rightTail, 0)
    this.length = comparison.first === null ? left.length : this.equal + this.lines.length + tail
  }

  tailOf(store, seq) {
    return seq === undefined ? this.equal : store.placeOf(seq) + 1
  }

  /** [mark, place in the left run or null, place in the right run or null]. */
  pair(row) {
    if (row < this.equal) return [' ', row, row]
    const line = this.lines[row - this.equal]
    if (line) {
      const [mark, left, right] = line
      return [
        mark,
        left === null ? null : this.left.placeOf(left),
        right === null ? null : this.right.placeOf(right),
      ]
    }
    const index = row - this.equal - this.lines.length
    const left = this.leftTail + index,
      right = this.rightTail + index
    return ['?', left < this.left.length ? left : null, right < this.right.length ? right : null]
  }
}

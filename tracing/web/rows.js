// Maps rows of the list to events: all events, those that pass a filter, or pairs of two runs.

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

/** Rows of two runs: equal events up to the first difference, then stretches that both share or
 *  that are the two sides of a difference, then both tails. */
export class PairRows {
  constructor(left, right, comparison) {
    this.left = left
    this.right = right
    this.equal = comparison.first === null ? left.length : left.placeOf(comparison.first)
    this.stretches = []
    let row = this.equal
    let leftEnd = this.equal,
      rightEnd = this.equal
    for (const [leftCount, rightCount, isShared] of comparison.stretches) {
      const count = isShared ? leftCount : leftCount + rightCount
      this.stretches.push({ row, count, isShared, left: leftEnd, right: rightEnd, leftCount })
      row += count
      leftEnd += leftCount
      rightEnd += rightCount
    }
    Object.assign(this, { tail: row, leftEnd, rightEnd })
    const rest = Math.max(left.length - leftEnd, right.length - rightEnd, 0)
    this.length = comparison.first === null ? left.length : row + rest
  }

  /** [mark, place in the left run or null, place in the right run or null]. */
  pair(row) {
    if (row < this.equal) return [' ', row, row]
    if (row >= this.tail) return this.tailPair(row - this.tail)
    let low = 0,
      high = this.stretches.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.stretches[middle].row <= row) low = middle
      else high = middle - 1
    }
    const { row: first, isShared, left, right, leftCount } = this.stretches[low]
    const index = row - first
    if (isShared) return ['~', left + index, right + index]
    if (index < leftCount) return ['-', left + index, null]
    return ['+', null, right + index - leftCount]
  }

  tailPair(index) {
    const left = this.leftEnd + index,
      right = this.rightEnd + index
    return ['?', left < this.left.length ? left : null, right < this.right.length ? right : null]
  }
}

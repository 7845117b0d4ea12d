// The partitions after the chosen event: every replica's log with its end and high watermark, and
// their growth over the run.

import { brokerColour, colours, el, sharpen } from './dom.js'
import { formatCount } from './text.js'

const REPLICA =
  /^broker-(\d+)\/(.+-\d+)\/(role|leader|leader_epoch|isr|log_end_offset|high_watermark)$/
const ZNODE = /\/znodes\/brokers\/topics\/([^/]+)$/
const DELETION = /\/znodes\/admin\/delete_topics\/([^/]+)$/
const SHOWN_MAX = 12

function json(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The partitions that exist, with the replicas that brokers have and those assigned in ZooKeeper.
    Partitions named in `toldFirst` come first. */
export function partitionsOf(state, toldFirst = []) {
  const found = new Map()
  const deleted = new Set()
  let knowsTopics = false
  const of = (name) => {
    if (!found.has(name)) found.set(name, { name, replicas: new Map(), assigned: [] })
    return found.get(name)
  }
  for (const [path, [value, seq]] of state) {
    const match = REPLICA.exec(path)
    if (match) {
      const { replicas } = of(match[2])
      const broker = Number(match[1])
      if (!replicas.has(broker)) replicas.set(broker, { broker, changed: {} })
      replicas.get(broker)[match[3]] = value
      replicas.get(broker).changed[match[3]] = seq
      continue
    }
    const deletion = DELETION.exec(path)
    if (deletion) deleted.add(deletion[1])
    const topic = ZNODE.exec(path)
    if (topic) knowsTopics = true
    const assignment = topic && json(value?.data)?.partitions
    for (const [number, brokers] of Object.entries(assignment ?? {}))
      of(`${topic[1]}-${number}`).assigned = brokers
  }
  const isThere = ({ replicas, assigned }) =>
    assigned.length || !knowsTopics || [...replicas.values()].some((replica) => replica.role)
  const isOwn = (name) => name.startsWith('__')
  const places = new Map(toldFirst.map((name, place) => [name, place]))
  const place = (name) => places.get(name) ?? places.size
  for (const partition of found.values())
    partition.isDeleted = deleted.has(partition.name.slice(0, partition.name.lastIndexOf('-')))
  return [...found.values()]
    .filter(isThere)
    .sort(
      (a, b) =>
        place(a.name) - place(b.name) ||
        isOwn(a.name) - isOwn(b.name) ||
        a.name.localeCompare(b.name, 'en', { numeric: true }),
    )
}

export class Partitions {
  constructor(box, app) {
    this.box = box
    this.app = app
    this.opened = new Set()
  }

  show(state, event) {
    const partitions = partitionsOf(state, Object.keys(this.app.overview?.bands ?? {}))
    const shown = partitions.slice(0, SHOWN_MAX)
    const hidden = partitions.length - shown.length
    this.box.replaceChildren(
      el('h2', {}, 'Partitions', el('span', { class: 'quiet' }, ` after #${event.seq}`)),
      ...shown.map((partition) => this.partition(partition, event)),
      partitions.length ? '' : el('p', { class: 'quiet' }, 'No broker has a partition yet.'),
      hidden ? el('p', { class: 'quiet' }, `${hidden} more are not shown; see State.`) : '',
    )
    for (const canvas of this.box.querySelectorAll('canvas')) this.history(canvas)
  }

  partition({ name, replicas, assigned, isDeleted }, event) {
    const leader = [...replicas.values()].find((replica) => replica.role === 'leader')
    const isr = leader?.isr ?? []
    const holders = [...replicas.values()].filter(({ role }) => role || !assigned.length)
    const brokers = [...new Set([...assigned, ...holders.map(({ broker }) => broker)])]
      .map(Number)
      .sort((a, b) => a - b)
    const ends = [...replicas.values()].map((replica) => replica.log_end_offset ?? 0)
    const details = el(
      'details',
      { toggle: () => this.toggled(name, details) },
      el(
        'summary',
        {},
        el('b', {}, name),
        leader
          ? el('span', {}, `leader ${leader.broker} · epoch ${leader.leader_epoch ?? '–'}`)
          : isDeleted
            ? el('span', { class: 'quiet' }, 'being deleted')
            : el('span', { class: 'bad' }, 'no leader'),
        el(
          'span',
          { class: isr.length < brokers.length ? 'warning' : 'quiet' },
          leader ? `ISR ${isr.join(', ')}` : '',
        ),
      ),
      el('canvas', { 'data-partition': name, role: 'img', 'aria-label': `${name} over the run` }),
    )
    details.open = this.opened.has(name)
    const rows = brokers.map((broker) =>
      this.replica(
        broker,
        replicas.get(broker),
        isDeleted,
        leader,
        isr,
        Math.max(1, ...ends),
        event,
      ),
    )
    return el('div', { class: 'partition', 'data-name': name }, details, rows)
  }

  toggled(name, details) {
    if (details.open) this.opened.add(name)
    else this.opened.delete(name)
    this.history(details.querySelector('canvas'))
  }

  replica(broker, replica, isDeleted, leader, isr, most, event) {
    const end = replica?.log_end_offset ?? 0,
      watermark = replica?.high_watermark ?? 0
    const isDown = !replica || replica.role === undefined
    const absent = isDeleted ? 'no replica' : 'down'
    const role = isDown ? absent : broker === leader?.broker ? 'leader' : replica.role
    const isIn = isr.includes(broker)
    const changed = (name) => (replica?.changed[name] === event.seq ? 'changed' : '')
    const percent = (offset) => `${(offset / most) * 100}%`
    return el(
      'div',
      {
        class: `replica ${isDown && isDeleted ? 'gone' : role}${isIn || !leader ? '' : ' out'}`,
        'aria-label':
          `broker ${broker}: ${role}, log end ${end}, high watermark ${watermark}` +
          (isIn ? ', in sync' : ''),
        role: 'img',
      },
      el(
        'span',
        { class: `broker ${changed('role')}` },
        el('i', { style: { background: brokerColour(broker) } }),
        `${broker} ${role}`,
      ),
      el(
        'span',
        { class: 'bar' },
        el('span', { class: 'records', style: { width: percent(end) } }),
        isDown ? '' : el('span', { class: 'watermark', style: { left: percent(watermark) } }),
      ),
      el(
        'span',
        { class: 'offsets' },
        el('span', { class: changed('log_end_offset') }, isDown ? '–' : formatCount(end)),
        el(
          'span',
          { class: `hw ${changed('high_watermark')}` },
          isDown ? '' : ` hw ${formatCount(watermark)}`,
        ),
      ),
    )
  }

  /** Log ends (lines) and high watermarks (dashed) of the replicas, over leadership bands. */
  history(canvas) {
    const { overview, chosen } = this.app
    const name = canvas.dataset.partition
    const logs = overview?.history.logs[name]
    const width = canvas.parentElement.clientWidth
    if (!canvas.parentElement.open || !logs || !width) return
    const height = 90
    const context = sharpen(canvas, width, height)
    const { buckets, width_us: widthUs, first_us: firstUs } = overview.history
    const x = (us) => ((us - firstUs) / (buckets * widthUs)) * width
    for (const [i, [, us, leader]] of (overview.bands[name] ?? []).entries()) {
      const next = overview.bands[name][i + 1]
      if (leader === -1) continue // the topic is deleted, so that no leader is missing
      context.fillStyle = leader === null ? colours().bad : brokerColour(leader)
      context.globalAlpha = leader === null ? 0.35 : 0.22
      context.fillRect(x(us), 0, (next ? x(next[1]) : width) - x(us), height)
    }
    context.globalAlpha = 1
    let most = 1
    for (const series of Object.values(logs))
      for (const [, value] of series.leo ?? []) most = Math.max(most, value ?? 0)
    for (const [i, [broker, series]] of Object.entries(logs).entries())
      for (const kind of ['hw', 'leo']) {
        context.strokeStyle = brokerColour(broker)
        context.lineWidth = kind === 'leo' ? 1.8 : 1
        context.setLineDash(kind === 'leo' ? [] : [4, 3])
        this.line(
          context,
          series[kind] ?? [],
          (bucket) => (bucket / buckets) * width,
          (value) => height - 3 - 2 * i - (value / most) * (height - 14),
        )
      }
    context.setLineDash([])
    if (chosen) {
      context.fillStyle = colours().chosen
      context.fillRect(x(chosen.timeUs) - 0.75, 0, 1.5, height)
    }
    canvas.onclick = (event) =>
      this.app.goToTime(firstUs + (event.offsetX / width) * buckets * widthUs)
  }

  line(context, points, x, y) {
    context.beginPath()
    let before = null
    for (const [bucket, value] of points) {
      if (value !== null && before !== null) {
        context.lineTo(x(bucket), y(before))
        context.lineTo(x(bucket), y(value))
      } else if (value !== null) context.moveTo(x(bucket), y(value))
      else if (before !== null) context.lineTo(x(bucket), y(before))
      before = value
    }
    context.stroke()
  }
}

// The space-time diagram: a lane for every actor, an arrow for every message; time runs downwards.

import { colours } from './dom.js'

const FETCHER = /^fetcher-(\d+)-from-(\d+)/
const RANKS = [
  /^(scenario|admin)$/,
  /^network$/,
  /^zk/,
  /^controller-/,
  /^broker-/,
  /^fetcher-/,
  /producer/,
  /consumer/,
]
const CONTROL =
  /^(LeaderAndIsr|UpdateMetadata|StopReplica|AlterIsr|AlterPartition|Controller|Allocate)/
const ZOOKEEPER = /^(ClientPacket|ServerPacket|WatchEvent|Ping|Connect|Disconnected)/
const HEAD = 5

function rank(actor) {
  const found = RANKS.findIndex((pattern) => pattern.test(actor))
  return found < 0 ? RANKS.length : found
}

/** A short name for the head of a lane. */
export function shortName(actor) {
  const match = /^(broker|controller|zk)-(\d+)$/.exec(actor)
  if (match) return { broker: 'b', controller: 'c', zk: 'zk' }[match[1]] + match[2]
  const client = /(pr|co|tr)\w*-(\d+)$/.exec(actor)
  if (client) return client[1] + client[2]
  return actor.slice(0, 3)
}

/** The lanes of a run from left to right; fetchers share the lane of their broker. */
export class Lanes {
  constructor(actors) {
    const shown = [...new Set(actors.map((actor) => this.home(actor, actors)))]
    this.names = shown
      .map((actor, i) => [rank(actor), i, actor])
      .sort(([a, i, m], [b, j, n]) => a - b || m.localeCompare(n, 'en', { numeric: true }) || i - j)
      .map(([, , actor]) => actor)
    this.indexes = new Map(this.names.map((actor, i) => [actor, i]))
    for (const actor of actors) this.indexes.set(actor, this.indexes.get(this.home(actor, actors)))
  }

  home(actor, actors) {
    const match = FETCHER.exec(actor)
    return match && actors.includes(`broker-${match[1]}`) ? `broker-${match[1]}` : actor
  }

  index(actor) {
    return this.indexes.get(actor) ?? -1
  }
}

export function messageColour(type) {
  const { special, warning, quiet, accent } = colours()
  if (CONTROL.test(type ?? '')) return special
  if (ZOOKEEPER.test(type ?? '')) return warning
  return /^Fetch/.test(type ?? '') ? quiet : accent
}

/** The times in which actors were down: lane to a list of [from event, to event]. */
export function outagesOf(marks, lanes) {
  const found = new Map(),
    open = new Map()
  for (const [seq, , kind, actor] of marks) {
    const lane = lanes.index(actor)
    if (kind === 'crash' && !open.has(lane)) {
      const outage = [seq, Infinity]
      open.set(lane, outage)
      found.set(lane, [...(found.get(lane) ?? []), outage])
    } else if (kind === 'restart' && open.has(lane)) {
      open.get(lane)[1] = seq
      open.delete(lane)
    }
  }
  return found
}

/** Draws the events in view. `items` are {event, y}; `yOf` maps an event's number to its y. */
export function drawDiagram(context, size, view) {
  const { lanes, items } = view
  const x = (actor) => (lanes.index(actor) + 0.5) * view.laneWidth
  drawLanes(context, size, view)
  for (const { event, y, isBeyond } of items) drawArrow(context, size, view, event, x, y, isBeyond)
  for (const { event, y, isBeyond } of items)
    if (!isBeyond) drawEvent(context, view, event, x(event.actor), y)
  context.globalAlpha = 1
}

function drawLanes(context, size, view) {
  const { line, bad } = colours()
  for (let i = 0; i < view.lanes.names.length; i++) {
    const x = Math.round((i + 0.5) * view.laneWidth) + 0.5
    context.strokeStyle = line
    context.lineWidth = 1
    context.beginPath()
    context.moveTo(x, 0)
    context.lineTo(x, size.height)
    context.stroke()
    for (const [from, to] of view.outages.get(i) ?? []) {
      const top = Math.max(view.yOf(from), 0)
      const bottom = to === Infinity ? size.height : Math.min(view.yOf(to), size.height)
      if (bottom <= top) continue
      context.strokeStyle = bad
      context.globalAlpha = 0.18
      context.lineWidth = Math.min(view.laneWidth * 0.6, 16)
      context.beginPath()
      context.moveTo(x, top)
      context.lineTo(x, bottom)
      context.stroke()
      context.globalAlpha = 1
    }
  }
}

function alphaOf(view, seq) {
  const { order, chosen } = view
  if (!order || seq === chosen || order.before.has(seq) || order.after.has(seq)) return 1
  return 0.22
}

function drawArrow(context, size, view, event, x, y, isBeyond) {
  const isMessage = event.kind === 'deliver' || event.kind === 'drop'
  if (!isMessage || event.peer === null || view.lanes.index(event.peer) < 0) return
  const from = event.cause === null ? y - 12 : view.yOf(event.cause)
  if (isBeyond && from > size.height) return
  const isLost = event.kind === 'drop'
  const [fromX, toX] =
    event.kind === 'drop' ? [x(event.actor), x(event.peer)] : [x(event.peer), x(event.actor)]
  if (Math.abs(fromX - toX) < 1) return
  const startY = isLost ? y : Math.max(from, -4000)
  const isMarked = view.chain.has(event.seq)
  context.globalAlpha = isMarked ? 1 : alphaOf(view, event.seq)
  context.strokeStyle = context.fillStyle = isLost ? colours().bad : messageColour(event.type)
  if (isMarked) context.strokeStyle = context.fillStyle = colours().chosen
  context.lineWidth = isMarked ? 2.5 : 1.1
  context.setLineDash(isLost ? [3, 3] : [])
  const endX = isLost ? fromX + (toX - fromX) * 0.45 : toX
  const endY = isLost ? y + 6 : y
  context.beginPath()
  context.moveTo(fromX, startY)
  context.lineTo(endX, endY)
  context.stroke()
  context.setLineDash([])
  if (isLost) drawCross(context, endX, endY, 3.5)
  else drawHead(context, fromX, startY, endX, endY)
}

function drawHead(context, fromX, fromY, toX, toY) {
  const angle = Math.atan2(toY - fromY, toX - fromX)
  const tipX = toX - 4 * Math.cos(angle),
    tipY = toY - 4 * Math.sin(angle)
  context.beginPath()
  context.moveTo(tipX, tipY)
  for (const turn of [0.45, -0.45])
    context.lineTo(
      tipX - (HEAD + 2) * Math.cos(angle + turn),
      tipY - (HEAD + 2) * Math.sin(angle + turn),
    )
  context.fill()
}

function drawCross(context, x, y, size) {
  context.lineWidth = 2
  context.beginPath()
  context.moveTo(x - size, y - size)
  context.lineTo(x + size, y + size)
  context.moveTo(x + size, y - size)
  context.lineTo(x - size, y + size)
  context.stroke()
}

const DOTS = {
  crash: 'bad',
  fault: 'bad',
  client_fail: 'bad',
  restart: 'good',
  client_ok: 'good',
  spawn: 'good',
  stop: 'quiet',
  timer_fire: 'quiet',
  note: 'special',
  step: 'special',
  expire: 'warning',
  drop: 'bad',
  client_invoke: 'busy',
  client_retry: 'warning',
}

function drawEvent(context, view, event, x, y) {
  const palette = colours()
  context.globalAlpha = alphaOf(view, event.seq)
  const colour = palette[DOTS[event.kind]] ?? messageColour(event.type)
  context.strokeStyle = context.fillStyle = colour
  context.lineWidth = 1.4
  if (event.kind === 'crash') drawCross(context, x, y, 6)
  else if (event.kind === 'timer_fire') {
    context.beginPath()
    context.moveTo(x, y - 4)
    context.lineTo(x + 4, y)
    context.lineTo(x, y + 4)
    context.lineTo(x - 4, y)
    context.fill()
  } else {
    const isSend = event.kind === 'send'
    context.beginPath()
    context.arc(x, y, isSend ? 2.6 : 3.6, 0, 7)
    if (isSend) {
      context.fillStyle = palette.card
      context.fill()
      context.stroke()
    } else context.fill()
  }
  if (event.hasDelta) {
    context.strokeStyle = palette.ink
    context.lineWidth = 1.2
    context.beginPath()
    context.arc(x, y, 5.6, 0, 7)
    context.stroke()
  }
  if (event.seq === view.chosen || view.chain.has(event.seq)) {
    context.globalAlpha = 1
    context.strokeStyle = palette.chosen
    context.lineWidth = event.seq === view.chosen ? 3 : 1.8
    context.beginPath()
    context.arc(x, y, event.seq === view.chosen ? 8 : 6.5, 0, 7)
    context.stroke()
  }
}

// The brokers and ZooKeeper servers, each with its buttons.

import { h, heading } from './dom.js'

/** Returns the machines whose links with all other machines are cut, in both directions. */
export function isolated(faults) {
  const cuts = new Set(faults.cuts.map((cut) => cut.join(' ')))
  const others = (name) => faults.machines.filter((other) => other !== name)
  const isCutOff = (name) =>
    others(name).every((other) => cuts.has(`${name} ${other}`) && cuts.has(`${other} ${name}`))
  return faults.machines.filter((name) => others(name).length > 0 && isCutOff(name))
}

const STATES = {
  running: 'good',
  starting: 'busy',
  pending_controlled_shutdown: 'busy',
  shutting_down: 'busy',
  not_running: 'bad',
}

function badge(kind, text) {
  return h('span', { key: text, class: `badge ${kind}` }, text)
}

function counts(state, id) {
  let leads = 0
  let holds = 0
  for (const partitions of Object.values(state.topics)) {
    for (const partition of partitions) {
      if (partition.leader === id) leads += 1
      if (partition.replicas.includes(id)) holds += 1
    }
  }
  return { leads, holds }
}

function broker(shown, state, cutOff, button) {
  const { id, name } = shown
  const at = `/brokers/${id}`
  const isCutOff = cutOff.includes(name)
  const { leads, holds } = counts(state, id)
  const badges = [badge(STATES[shown.state] ?? 'busy', shown.state.replaceAll('_', ' '))]
  if (state.controller.id === id) badges.push(badge('controller', 'controller'))
  if (shown.is_paused) badges.push(badge('warning', 'paused'))
  if (isCutOff) badges.push(badge('warning', 'isolated'))
  if (shown.offline_log_dirs.length)
    badges.push(badge('bad', `offline: ${shown.offline_log_dirs.join(', ')}`))
  const isUp = shown.is_alive
  const buttons = isUp
    ? [
        button('Kill', `Kill broker ${id}`, 'POST', `${at}/kill`, { kind: 'danger' }),
        button('Shut down', `Shut down broker ${id}`, 'POST', `${at}/shutdown`),
        shown.is_paused
          ? button('Resume', `Resume broker ${id}`, 'POST', `${at}/resume`)
          : button('Pause', `Pause broker ${id}`, 'POST', `${at}/pause`),
      ]
    : [button('Start', `Start broker ${id}`, 'POST', `${at}/start`, { kind: 'good' })]
  if (!isCutOff)
    buttons.push(
      button('Isolate', `Isolate broker ${id}`, 'POST', '/network/isolate', {
        body: { machine: name },
      }),
    )
  else
    buttons.push(
      button('Heal', `Heal the network, broker ${id} included`, 'POST', '/network/heal', {
        kind: 'good',
      }),
    )
  return h(
    'li',
    { key: name, class: `card ${isUp ? '' : 'down'}`, 'data-broker': id },
    h('div', { class: 'title' }, h('h3', {}, `Broker ${id}`), badges),
    h(
      'p',
      { class: 'quiet' },
      `port ${shown.port} · leads ${leads} · ${holds} ${holds === 1 ? 'replica' : 'replicas'}`,
    ),
    h('div', { class: 'actions' }, buttons),
  )
}

function zookeeper(shown, cutOff, button) {
  const at = `/zookeeper/servers/${shown.id}`
  const state = !shown.is_alive
    ? badge('bad', 'not running')
    : shown.is_serving
      ? badge('good', 'serving')
      : badge('busy', 'not serving')
  const isCutOff = cutOff.includes(shown.name)
  return h(
    'li',
    { key: shown.name, class: `card small ${shown.is_alive ? '' : 'down'}` },
    h(
      'div',
      { class: 'title' },
      h('h3', {}, `ZooKeeper ${shown.id}`),
      state,
      isCutOff ? badge('warning', 'isolated') : null,
    ),
    h(
      'div',
      { class: 'actions' },
      shown.is_alive
        ? button('Kill', `Kill ZooKeeper server ${shown.id}`, 'POST', `${at}/kill`, {
            kind: 'danger',
          })
        : button('Start', `Start ZooKeeper server ${shown.id}`, 'POST', `${at}/start`, {
            kind: 'good',
          }),
      isCutOff
        ? null
        : button('Isolate', `Isolate ZooKeeper server ${shown.id}`, 'POST', '/network/isolate', {
            body: { machine: shown.name },
          }),
    ),
  )
}

/** Describes the section of brokers and ZooKeeper servers. */
export function brokers(state, button) {
  const cutOff = isolated(state.faults)
  const up = state.brokers.filter((shown) => shown.is_alive).length
  return [
    heading(
      'Brokers',
      `${up} of ${state.brokers.length} up`,
      button(
        'Elect preferred leaders',
        'Elect the preferred leader of every partition',
        'POST',
        '/elect_leaders',
        { body: { election: 'preferred' } },
      ),
      state.controller.id === null
        ? null
        : button(
            'Move controller',
            'Let the controller resign, so that another is elected',
            'POST',
            '/controller/resign',
          ),
    ),
    h(
      'ul',
      { key: 'brokers', class: 'cards' },
      state.brokers.map((shown) => broker(shown, state, cutOff, button)),
    ),
    h(
      'ul',
      { key: 'zookeepers', class: 'cards' },
      state.zookeepers.map((shown) => zookeeper(shown, cutOff, button)),
    ),
  ]
}

// The faults that are at work, each with a button that ends it.

import { isolated } from './brokers.js'
import { h, heading } from './dom.js'

const CUTS_SHOWN = 12

function entry(key, text, ...buttons) {
  return h('li', { key, class: 'fault' }, h('span', {}, text), ...buttons)
}

function limits(order, names) {
  return names
    .filter((name) => order[name] !== undefined && order[name] !== null)
    .map((name) => `${name} ${order[name]}`)
}

function cutEntries(faults) {
  const cutOff = isolated(faults)
  const others = faults.cuts.filter((cut) => !cut.some((name) => cutOff.includes(name)))
  const shown = others.slice(0, CUTS_SHOWN)
  return [
    cutOff.map((name) => entry(`isolated ${name}`, `${name} is isolated`)),
    shown.map(([source, target]) =>
      entry(`cut ${source} ${target}`, `nothing gets from ${source} to ${target}`),
    ),
    others.length > shown.length
      ? entry('cuts', `and ${others.length - shown.length} more cut links`)
      : null,
  ]
}

function injectionEntry(one, button) {
  const effect = one.error ?? one.errors ?? one.answer
  const words = [
    effect === undefined ? null : typeof effect === 'string' ? effect : JSON.stringify(effect),
    one.disconnect ? 'disconnect' : null,
    one.delay_ms ? `${one.delay_ms} ms late` : null,
    ...limits(one, ['topic', 'partition', 'broker', 'client_id', 'nth']),
  ]
  const left = one.remaining === null ? 'no limit' : `${one.remaining} to come`
  const cancel = button('Cancel', `Cancel injection ${one.id}`, 'DELETE', `/injections/${one.id}`)
  return entry(
    `injection ${one.id}`,
    `injection ${one.id} into ${one.api}: ${words.filter(Boolean).join(', ')}; ` +
      `${one.applied} applied, ${left}`,
    cancel,
  )
}

function holdEntry(one, button) {
  const which = (one.messages ?? []).join(', ') || 'messages'
  const ends = [
    one.source === undefined ? '' : ` from ${one.source}`,
    one.target === undefined ? '' : ` to ${one.target}`,
  ]
  const at = `/network/holds/${one.id}`
  return entry(
    `hold ${one.id}`,
    `${which}${ends.join('')} held back: ${one.held} now`,
    button('Release', `Release what hold ${one.id} keeps`, 'POST', `${at}/release`),
    button('End', `End hold ${one.id}`, 'DELETE', at),
  )
}

/** Everything that was set to work and has not ended. */
export function faults(state, button) {
  const now = state.faults
  const active = now.injections.filter((one) => one.remaining !== 0)
  const entries = [
    state.brokers
      .filter((one) => one.is_paused)
      .map((one) =>
        entry(
          `paused ${one.id}`,
          `broker-${one.id} is paused`,
          button(
            'Resume',
            `Resume broker ${one.id}, which is paused`,
            'POST',
            `/brokers/${one.id}/resume`,
          ),
        ),
      ),
    cutEntries(now),
    now.loss ? entry('loss', `${now.loss * 100} % of all messages are lost`) : null,
    now.link_losses.map((link) =>
      entry(
        `loss ${link.source} ${link.target}`,
        `${link.probability * 100} % is lost from ${link.source} to ${link.target}`,
      ),
    ),
    now.link_latencies.map((link) =>
      entry(
        `latency ${link.source} ${link.target}`,
        `${link.latency} from ${link.source} to ${link.target}`,
      ),
    ),
    now.holds.map((one) => holdEntry(one, button)),
    active.map((one) => injectionEntry(one, button)),
    state.failures.map((text, index) =>
      entry(`failure ${index}`, `failure of the emulation: ${text}`),
    ),
  ]
    .flat(Infinity)
    .filter(Boolean)
  const heals = now.cuts.length || now.loss || now.link_losses.length
  return [
    heading(
      'Faults at work',
      entries.length,
      heals
        ? button('Heal the network', 'Undo every cut and loss', 'POST', '/network/heal', {
            kind: 'good',
          })
        : null,
    ),
    entries.length
      ? h('ul', { key: 'list', class: 'faults' }, entries)
      : h(
          'p',
          { key: 'none', class: 'quiet' },
          'None. Links, brokers and answers are as they should be.',
        ),
  ]
}

// The active faults, each with the buttons that end it.

import { h, heading } from './dom.js'

function entry(fault, button) {
  return h(
    'li',
    { key: fault.text, class: 'fault' },
    h('span', {}, fault.text, fault.detail ? `; ${fault.detail}` : null),
    fault.endings.map((one) =>
      button(one.title, `${one.title}: ${fault.text}`, one.method, one.path, { body: one.body }),
    ),
  )
}

/** Describes the section of active faults of brokers, disks, links, messages and responses. */
export function faults(state, button) {
  const active = state.faults.at_work
  const heals = state.faults.cuts.length || state.faults.loss || state.faults.link_losses.length
  return [
    heading(
      'Active faults',
      active.length + state.failures.length,
      heals
        ? button('Heal the network', 'Undo every cut and loss', 'POST', '/network/heal', {
            kind: 'good',
          })
        : null,
    ),
    active.length || state.failures.length
      ? h(
          'ul',
          { key: 'list', class: 'faults' },
          active.map((fault) => entry(fault, button)),
          state.failures.map((text, index) =>
            h(
              'li',
              { key: `failure ${index}`, class: 'fault' },
              h('span', {}, `failure of the emulation: ${text}`),
            ),
          ),
        )
      : h(
          'p',
          { key: 'none', class: 'quiet' },
          'None. Links, brokers and answers are as they should be.',
        ),
  ]
}

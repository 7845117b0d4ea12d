// Consumer groups with their members and lag, and transactions.

import { h, heading, table } from './dom.js'

const KINDS = {
  Stable: 'good',
  Empty: 'quiet',
  Dead: 'quiet',
  Ongoing: 'busy',
  CompleteCommit: 'good',
  CompleteAbort: 'good',
}

function state(text) {
  return h('span', { class: `badge ${KINDS[text] ?? 'busy'}` }, text)
}

function names(partitions) {
  return partitions.map(([topic, partition]) => `${topic}-${partition}`).join(' ')
}

function member(one) {
  const who = one.group_instance_id ?? one.client_id
  return h(
    'li',
    { key: one.member_id, title: one.member_id },
    h('b', {}, who),
    ` ${one.client_host} `,
    h(
      'span',
      { class: 'quiet' },
      one.assignment === null ? '' : names(one.assignment) || 'no partitions',
    ),
  )
}

function offset(entry) {
  const lag = entry.lag === null ? 'lag unknown' : `lag ${entry.lag}`
  return h(
    'li',
    { key: `${entry.topic}-${entry.partition}` },
    h('b', {}, `${entry.topic}-${entry.partition}`),
    ` ${entry.offset} of ${entry.high_watermark ?? '?'} `,
    h('span', { class: entry.lag ? 'lag' : 'quiet' }, lag),
  )
}

/** Describes the actions on a group without members; for other groups, why there are none. */
function actions(group, button) {
  if (group.members.length)
    return h('span', { class: 'quiet' }, 'in use: only a group without members can be changed')
  const name = group.group
  const reset = (title, to) =>
    button(title, `Reset the offsets of ${name} to the ${to}`, 'POST', '/reset_offsets', {
      body: { group: name, to },
      confirm: true,
    })
  return h(
    'div',
    { class: 'actions' },
    group.offsets.length ? [reset('To earliest', 'earliest'), reset('To latest', 'latest')] : null,
    button(
      'Delete',
      `Delete the group ${name}`,
      'DELETE',
      `/groups/${name.split('/').map(encodeURIComponent).join('/')}`,
      { kind: 'danger', confirm: true },
    ),
  )
}

function groupRow(group, button) {
  return h(
    'tr',
    { key: group.group, 'data-group': group.group },
    h('th', { scope: 'row' }, group.group),
    h('td', { 'data-title': 'state' }, state(group.state)),
    h(
      'td',
      { class: 'wide', 'data-title': 'members' },
      h(
        'ul',
        { class: 'plain' },
        group.members.map(member),
        group.members.length ? null : h('li', { class: 'quiet' }, 'none'),
      ),
    ),
    h(
      'td',
      { class: 'wide', 'data-title': 'committed offsets' },
      h(
        'ul',
        { class: 'plain' },
        group.offsets.map(offset),
        group.offsets.length ? null : h('li', { class: 'quiet' }, 'none committed'),
      ),
    ),
    h('td', { class: group.lag ? 'lag' : null, 'data-title': 'lag' }, group.lag),
    h('td', { 'data-title': 'coordinator' }, group.coordinator),
    h('td', { class: 'wide' }, actions(group, button)),
  )
}

/** Describes the section of consumer groups. */
export function groups(found, button) {
  const titles = ['group', 'state', 'members', 'committed offsets', 'lag', 'coordinator', '']
  return [
    heading('Consumer groups', found.length),
    found.length
      ? table('Consumer groups', titles, found.map((group) => groupRow(group, button)))
      : h('p', { key: 'none', class: 'quiet' }, 'There are no groups yet.'),
  ]
}

function transactionRow(one) {
  return h(
    'tr',
    { key: one.transactional_id },
    h('th', { scope: 'row' }, one.transactional_id),
    h('td', { 'data-title': 'state' }, state(one.state)),
    h('td', { 'data-title': 'producer id' }, `${one.producer_id}, epoch ${one.producer_epoch}`),
    h(
      'td',
      { 'data-title': 'partitions' },
      names(one.partitions) || h('span', { class: 'quiet' }, 'none'),
    ),
    h('td', { 'data-title': 'coordinator' }, one.coordinator),
  )
}

/** Describes the section of transactional ids. */
export function transactions(found) {
  const titles = ['transactional id', 'state', 'producer id', 'partitions', 'coordinator']
  return [
    heading('Transactions', found.length),
    found.length
      ? table('Transactions', titles, found.map(transactionRow))
      : h('p', { key: 'none', class: 'quiet' }, 'There are no transactional ids yet.'),
  ]
}

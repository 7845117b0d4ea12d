// The ACLs of a cluster with an authorizer.

import { h, heading, table } from './dom.js'

const TITLES = ['principal', 'permission', 'operation', 'resource', 'host']

function row(acl) {
  const resource = `${acl.resource_type.toLowerCase()} ${acl.resource}`
  return h(
    'tr',
    { key: Object.values(acl).join(' ') },
    h('th', { scope: 'row' }, acl.principal),
    h(
      'td',
      { 'data-title': 'permission' },
      h(
        'span',
        { class: `badge ${acl.permission === 'ALLOW' ? 'good' : 'bad'}` },
        acl.permission.toLowerCase(),
      ),
    ),
    h('td', { 'data-title': 'operation' }, acl.operation.toLowerCase()),
    h(
      'td',
      { 'data-title': 'resource' },
      resource,
      acl.pattern === 'PREFIXED' ? h('span', { class: 'quiet' }, ' (prefix)') : null,
    ),
    h('td', { 'data-title': 'host' }, acl.host),
  )
}

/** Describes the section of ACLs. */
export function acls(found) {
  return [
    heading('ACLs', found.has_authorizer ? found.acls.length : undefined),
    !found.has_authorizer
      ? h(
          'p',
          { key: 'without', class: 'quiet' },
          'The cluster has no authorizer: all clients may do everything.',
        )
      : found.acls.length
        ? table('ACLs', TITLES, found.acls.map(row))
        : h(
            'p',
            { key: 'none', class: 'quiet' },
            'There are no ACLs: only super users have access.',
          ),
  ]
}

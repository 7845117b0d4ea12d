// Builds elements and updates them in place, without losing focus, scroll position or open details.

/** Describes an element. Text among the children is shown literally, never parsed as HTML. */
export function h(tag, attributes, ...children) {
  return {
    tag,
    attributes: attributes ?? {},
    children: present(children),
  }
}

/** Drops null, undefined and false from the children; 0 and the empty text are kept. */
function present(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
}

/** Updates the children of an element to match descriptions; elements that fit are reused. */
export function show(parent, ...described) {
  const wanted = present(described)
  const keyed = new Map()
  for (const node of parent.childNodes)
    if (node.shownKey !== undefined) keyed.set(node.shownKey, node)
  let at = parent.firstChild
  for (const child of wanted) {
    const key = child.attributes?.key
    let node = key === undefined ? at : (keyed.get(key) ?? null)
    if (!fits(node, child)) node = create(child)
    if (node === at) at = at.nextSibling
    else parent.insertBefore(node, at)
    update(node, child)
  }
  while (at) {
    const next = at.nextSibling
    at.remove()
    at = next
  }
}

function fits(node, child) {
  if (!node) return false
  if (child.tag === undefined) return node.nodeType === Node.TEXT_NODE
  return node.shownTag === child.tag && node.shownKey === child.attributes.key
}

function create(child) {
  if (child.tag === undefined) return document.createTextNode('')
  const node = document.createElement(child.tag)
  node.shownTag = child.tag
  node.shownKey = child.attributes.key
  node.shownAt = performance.now()
  return node
}

function update(node, child) {
  if (child.tag === undefined) {
    if (node.data !== String(child)) node.data = String(child)
    return
  }
  const before = node.shownAttributes ?? {}
  for (const name of Object.keys(before)) if (!(name in child.attributes)) set(node, name, null)
  for (const [name, value] of Object.entries(child.attributes))
    if (before[name] !== value) set(node, name, value)
  node.shownAttributes = child.attributes
  show(node, ...child.children)
  // The value can only be set once its option exists.
  if (child.tag === 'select' && node.value !== child.attributes.value)
    node.value = child.attributes.value
}

function set(node, name, value) {
  if (name === 'key') return
  if (name.startsWith('on')) node[name] = value
  else if (name === 'style')
    for (const [key, text] of Object.entries(value ?? {})) node.style.setProperty(key, text)
  else if (name === 'value') {
    if (node.value !== value) node.value = value ?? ''
  } else if (value === null || value === undefined || value === false) node.removeAttribute(name)
  else node.setAttribute(name, value === true ? '' : value)
}

/** Describes the heading of a section, with a count and the actions on the whole section. */
export function heading(text, count, ...actions) {
  return h(
    'div',
    { key: 'heading', class: 'heading' },
    h('h2', {}, text),
    count === undefined ? null : h('span', { class: 'count' }, count),
    h('div', { class: 'actions' }, ...actions),
  )
}

/** Describes a table in a frame, which scrolls if the table is wider than the screen. */
export function table(label, titles, rows) {
  const head = h(
    'thead',
    {},
    h(
      'tr',
      {},
      titles.map((title) => h('th', { scope: 'col' }, title)),
    ),
  )
  return h(
    'div',
    { key: 'table', class: 'frame', tabindex: 0, role: 'region', 'aria-label': label },
    h('table', {}, head, h('tbody', {}, rows)),
  )
}

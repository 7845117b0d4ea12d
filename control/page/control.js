// Sends requests to the control API, and follows its events.

/** Returns the control API's answer to a GET; throws an Error with its message. */
export async function ask(path, signal) {
  return answered(await fetch(path, { signal, cache: 'no-store' }))
}

/** Sends a request that changes something, and returns the answer. */
export async function order(method, path, body = {}) {
  const init = { method, headers: {} }
  if (method !== 'DELETE') {
    init.headers['Content-Type'] = 'application/json'
    init.body = JSON.stringify(body)
  }
  return answered(await fetch(path, init))
}

async function answered(response) {
  const value = await response.json()
  if (!response.ok) throw new Error(value?.error ?? `status ${response.status}`)
  return value
}

const AGAIN_MS = 1000

/**
 * Follows the events forever. `heard` is called with each event once, `connected` with the state of
 * the connection, and `begun` when another process at the same address restarts the event ids.
 */
export function follow({ heard, connected, begun }) {
  let last = 0
  let process = null
  const open = async () => {
    try {
      const { pid } = await ask('/health')
      if (process !== pid) {
        if (process !== null) begun()
        process = pid
        last = 0
      }
    } catch {
      setTimeout(open, AGAIN_MS)
      return
    }
    const stream = new EventSource(`/events?since=${last}`)
    const receive = (message) => {
      const event = JSON.parse(message.data)
      last = event.id ?? last
      heard(event)
    }
    for (const type of [
      'election',
      'isr',
      'broker',
      'zookeeper',
      'controller',
      'topic',
      'group',
      'fault',
      'refused',
      'memory',
      'action',
      'lost',
    ])
      stream.addEventListener(type, receive)
    stream.onopen = () => connected(true)
    stream.onerror = () => {
      stream.close()
      connected(false)
      setTimeout(open, AGAIN_MS)
    }
  }
  open()
}

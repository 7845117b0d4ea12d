// Sends requests to the control API, and follows its events.

/** Returns the control API's answer to a GET; throws an Error with its message. */
export async function get(path, signal) {
  return parsed(await fetch(path, { signal, cache: 'no-store' }))
}

/** Sends a request that changes something, and returns the answer. */
export async function send(method, path, body = {}) {
  const init = { method, headers: {} }
  if (method !== 'DELETE') {
    init.headers['Content-Type'] = 'application/json'
    init.body = JSON.stringify(body)
  }
  return parsed(await fetch(path, init))
}

async function parsed(response) {
  const value = await response.json()
  if (!response.ok) throw new Error(value?.error ?? `status ${response.status}`)
  return value
}

const RETRY_MS = 1000

/**
 * Follows the events forever. `onEvent` is called with each event once, `onConnection` with the
 * state of the connection, and `onRestart` when another process at the same address restarts the
 * event ids.
 */
export function followEvents({ onEvent, onConnection, onRestart }) {
  let last = 0
  let process = null
  const open = async () => {
    try {
      const { pid } = await get('/health')
      if (process !== pid) {
        if (process !== null) onRestart()
        process = pid
        last = 0
      }
    } catch {
      setTimeout(open, RETRY_MS)
      return
    }
    const stream = new EventSource(`/events?since=${last}`)
    const receive = (message) => {
      const event = JSON.parse(message.data)
      last = event.id ?? last
      onEvent(event)
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
    stream.onopen = () => onConnection(true)
    stream.onerror = () => {
      stream.close()
      onConnection(false)
      setTimeout(open, RETRY_MS)
    }
  }
  open()
}

// Asks the control API, and follows its events.

/** The value that the control API answers; raises an Error with its words. */
export async function ask(path, signal) {
  return answered(await fetch(path, { signal, cache: 'no-store' }))
}

/** Let the control API do something. */
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
 * Follows the events for good. `heard` gets each event once, `connected` whether there is a stream.
 * Another process at the same address begins to count anew: then `begun` is called.
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

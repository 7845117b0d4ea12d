// A browser starts no worker for a page that is opened as a file, and the search runs in a worker.
// There a hidden frame, which may run scripts beside the page, takes the worker's place.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement('iframe')
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent('message', { data }))
      this.loaded = new Promise((resolve, reject) => {
        const script = inside.document.createElement('script')
        script.onload = () => resolve(inside)
        script.onerror = () => reject(new Error(`${url} cannot be loaded`))
        script.src = new URL(url, location.href).href
        inside.document.body.append(script)
      })
      this.frame = frame
    }

    postMessage(data) {
      this.loaded.then((inside) => inside.dispatchEvent(new MessageEvent('message', { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}

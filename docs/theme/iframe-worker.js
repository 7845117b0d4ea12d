// Browsers do not start workers for a page that is opened as a file, but the search needs one.
// In that case a hidden frame, which can run scripts beside the page, replaces the worker.
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

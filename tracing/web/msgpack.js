// Reads MessagePack, as in the bodies of chunks and snapshots. Truncated bytes are extension 1.

const TEXT = new TextDecoder('utf-8', { fatal: true })
const LAX = new TextDecoder()

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Bytes as text if they are printable UTF-8, else in hexadecimal. */
export function bytesText(bytes) {
  let isAscii = true
  for (const byte of bytes) {
    if (byte < 32 || byte === 127) return '0x' + Array.from(bytes, (each) => HEX[each]).join('')
    isAscii &&= byte < 128
  }
  if (isAscii) return LAX.decode(bytes)
  try {
    const text = TEXT.decode(bytes)
    if (!/[\p{Cc}\p{Cs}\p{Co}\p{Cn}]/u.test(text)) return text
  } catch {
    // not UTF-8: shown as hexadecimal
  }
  return '0x' + Array.from(bytes, (byte) => HEX[byte]).join('')
}

class MessagePackReader {
  constructor(bytes) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.at = 0
  }

  uint(size) {
    let value = 0
    for (const end = this.at + size; this.at < end; this.at++)
      value = value * 256 + this.bytes[this.at]
    return value
  }

  int(size) {
    const value = this.uint(size)
    return value < 2 ** (8 * size - 1) ? value : value - 2 ** (8 * size)
  }

  float(size) {
    const value = size === 4 ? this.view.getFloat32(this.at) : this.view.getFloat64(this.at)
    this.at += size
    return value
  }

  take(length) {
    const part = this.bytes.subarray(this.at, this.at + length)
    if (part.length < length) throw new RangeError('the data is cut off')
    this.at += length
    return part
  }

  text(length) {
    if (length > 24) return LAX.decode(this.take(length))
    let text = ''
    for (let i = this.at; i < this.at + length; i++) {
      if (!(this.bytes[i] < 128)) return LAX.decode(this.take(length))
      text += String.fromCharCode(this.bytes[i])
    }
    this.at += length
    return text
  }

  array(length) {
    const items = []
    if (length > this.bytes.length) throw new RangeError('the data is cut off')
    for (let i = 0; i < length; i++) items.push(this.value())
    return items
  }

  map(length) {
    const items = Object.create(null)
    for (let i = 0; i < length; i++) {
      const key = this.value()
      items[String(key)] = this.value()
    }
    return items
  }

  extension(length) {
    const code = this.int(1)
    const data = this.take(length)
    if (code !== 1) return { length, head: bytesText(data) }
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
    return { length: Number(view.getBigUint64(0, true)), head: bytesText(data.subarray(8)) }
  }

  value() {
    const code = this.bytes[this.at++]
    if (code === undefined) throw new RangeError('the data is cut off')
    if (code < 0x80) return code
    if (code < 0x90) return this.map(code & 0x0f)
    if (code < 0xa0) return this.array(code & 0x0f)
    if (code < 0xc0) return this.text(code & 0x1f)
    if (code >= 0xe0) return code - 256
    switch (code) {
      case 0xc0:
        return null
      case 0xc2:
        return false
      case 0xc3:
        return true
      case 0xc4:
        return bytesText(this.take(this.uint(1)))
      case 0xc5:
        return bytesText(this.take(this.uint(2)))
      case 0xc6:
        return bytesText(this.take(this.uint(4)))
      case 0xc7:
        return this.extension(this.uint(1))
      case 0xc8:
        return this.extension(this.uint(2))
      case 0xc9:
        return this.extension(this.uint(4))
      case 0xca:
        return this.float(4)
      case 0xcb:
        return this.float(8)
      case 0xcc:
        return this.uint(1)
      case 0xcd:
        return this.uint(2)
      case 0xce:
        return this.uint(4)
      case 0xcf:
        return this.uint(8)
      case 0xd0:
        return this.int(1)
      case 0xd1:
        return this.int(2)
      case 0xd2:
        return this.int(4)
      case 0xd3:
        return Number(new DataView(this.take(8).slice().buffer).getBigInt64(0))
      case 0xd9:
        return this.text(this.uint(1))
      case 0xda:
        return this.text(this.uint(2))
      case 0xdb:
        return this.text(this.uint(4))
      case 0xdc:
        return this.array(this.uint(2))
      case 0xdd:
        return this.array(this.uint(4))
      case 0xde:
        return this.map(this.uint(2))
      case 0xdf:
        return this.map(this.uint(4))
    }
    if (code >= 0xd4 && code <= 0xd8) return this.extension(1 << (code - 0xd4))
    throw new RangeError(`byte ${code} begins no value`)
  }
}

export function unpack(bytes) {
  return new MessagePackReader(bytes).value()
}

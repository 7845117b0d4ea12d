// Steps of KafkaJS; prints "ok NAME" or "failed NAME: reason" for each.
import { readFileSync } from 'fs'
import kafkajs from 'kafkajs'

const { Kafka, CompressionTypes, ConfigResourceTypes, logLevel } = kafkajs
const brokers = process.argv[2].split(',')
const { ca, mechanism, user, password } = JSON.parse(process.argv[3])
const security = ca && {
  ssl: { ca: [readFileSync(ca)] },
  sasl: { mechanism: mechanism.toLowerCase(), username: user, password },
}
const kafka = new Kafka({ brokers, clientId: 'suite', logLevel: logLevel.NOTHING, ...security })
const admin = kafka.admin()
let names = 0
// A member leaves when the fetch that it waits for is answered.
const quick = { heartbeatInterval: 200, maxWaitTimeInMs: 100 }

const check = (holds, what) => {
  if (!holds) throw new Error(`${what}`)
}
const sleep = ms => new Promise(done => setTimeout(done, ms))
const until = async (what, holds) => {
  const end = Date.now() + 30000
  while (!(await holds())) {
    check(Date.now() < end, `not within 30 s: ${what}`)
    await sleep(20)
  }
}

const topic = async (partitions = 1) => {
  const name = `topic-${names++}`
  const wanted = { topic: name, numPartitions: partitions, replicationFactor: 3 }
  await admin.createTopics({ topics: [wanted], waitForLeaders: true })
  return name
}

const using = async (client, body) => {
  await client.connect()
  try {
    return await body(client)
  } finally {
    await client.disconnect()
  }
}

const write = (name, values, options = {}, sending = {}) =>
  using(kafka.producer(options), producer =>
    producer.send({ topic: name, messages: values.map(value => ({ value })), ...sending })
  )

const member = async (group, name, options = {}) => {
  const consumer = kafka.consumer({ groupId: group, ...quick, ...options })
  const found = { consumer, values: [], partitions: [] }
  consumer.on(consumer.events.GROUP_JOIN, event => {
    found.partitions = event.payload.memberAssignment[name] || []
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [name], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ message }) => void found.values.push(`${message.value}`),
  })
  return found
}

const read = async (name, count, options = {}) => {
  const found = await member(`group-${name}`, name, options)
  try {
    await until(`${count} records`, () => found.values.length >= count)
    return found.values
  } finally {
    await found.consumer.disconnect()
  }
}

const steps = {
  'topics are created, described and deleted': async () => {
    const name = await topic(3)
    check((await admin.listTopics()).includes(name), 'listed')
    const { topics } = await admin.fetchTopicMetadata({ topics: [name] })
    check(topics[0].partitions.length === 3, 'partitions')
    check(!(await admin.createTopics({ topics: [{ topic: name }] })), 'created twice')
    await admin.createPartitions({ topicPartitions: [{ topic: name, count: 5 }] })
    const cluster = await admin.describeCluster()
    check(cluster.brokers.length === 3 && cluster.controller > 0, 'cluster')
    await admin.deleteTopics({ topics: [name] })
    await until('gone', async () => !(await admin.listTopics()).includes(name))
  },
  'configs are altered and described': async () => {
    const resource = { type: ConfigResourceTypes.TOPIC, name: await topic() }
    const configEntries = [{ name: 'retention.ms', value: '1234' }]
    await admin.alterConfigs({ resources: [{ ...resource, configEntries }] })
    const { resources } = await admin.describeConfigs({ resources: [resource] })
    const found = resources[0].configEntries.find(entry => entry.configName === 'retention.ms')
    check(found.configValue === '1234', found)
  },
  'offsets and deleted records': async () => {
    const name = await topic()
    await write(name, ['a', 'b', 'c', 'd'])
    await admin.fetchTopicOffsets(name) // deleteTopicRecords wants the topic in its metadata
    await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '3' }] })
    const [offsets] = await admin.fetchTopicOffsets(name)
    check(offsets.low === '3' && offsets.high === '4', JSON.stringify(offsets))
    const [first] = await admin.fetchTopicOffsetsByTimestamp(name, 0)
    check(first.offset === '3', JSON.stringify(first))
  },
  'partitions are reassigned': async () => {
    const name = await topic()
    const partitionAssignment = [{ partition: 0, replicas: [2, 3] }]
    await admin.alterPartitionReassignments({ topics: [{ topic: name, partitionAssignment }] })
    await until('reassigned', async () => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [name] })
      return topics[0].partitions[0].replicas.length === 2
    })
    check((await admin.listPartitionReassignments({})).topics.length === 0, 'listed')
  },
  'produce and consume': async () => {
    const name = await topic()
    await write(name, ['a', 'b'])
    check((await read(name, 2)).join() === 'a,b', 'values')
  },
  'produce and consume, compression gzip': async () => {
    const name = await topic()
    await write(name, ['a', 'b'], {}, { compression: CompressionTypes.GZIP })
    check((await read(name, 2)).join() === 'a,b', 'values')
  },
  'produce and consume without acknowledgement': async () => {
    const name = await topic()
    await write(name, ['a'], {}, { acks: 0 })
    check((await read(name, 1)).join() === 'a', 'values')
  },
  'members join and leave': async () => {
    const name = await topic(6)
    const group = `group-${name}`
    const first = await member(group, name)
    const shared = (...members) => () => {
      const all = members.flatMap(({ partitions }) => partitions)
      const each = members.every(({ partitions }) => partitions.length)
      return each && all.length === 6 && new Set(all).size === 6
    }
    await until('one member', shared(first))
    const others = [await member(group, name), await member(group, name)]
    await until('three members', shared(first, ...others))
    const { groups } = await admin.describeGroups([group])
    check(groups[0].members.length === 3 && groups[0].state === 'Stable', groups[0].state)
    for (const { consumer } of others) await consumer.disconnect()
    await until('one member again', shared(first))
    await first.consumer.disconnect()
    check((await admin.listGroups()).groups.some(({ groupId }) => groupId === group), 'listed')
    await admin.deleteGroups([group])
  },
  'offsets of a group are set, fetched and reset': async () => {
    const name = await topic()
    await write(name, ['a', 'b', 'c'])
    const groupId = `group-${name}`
    await admin.setOffsets({ groupId, topic: name, partitions: [{ partition: 0, offset: '2' }] })
    const [found] = await admin.fetchOffsets({ groupId, topics: [name] })
    check(found.partitions[0].offset === '2', JSON.stringify(found))
    check((await read(name, 1)).join() === 'c', 'not resumed')
    await admin.resetOffsets({ groupId, topic: name, earliest: true })
    check((await read(name, 3)).length === 3, 'not reset')
  },
  'seek, pause and resume': async () => {
    const name = await topic()
    await write(name, ['a', 'b', 'c'])
    const found = await member(`group-${name}`, name)
    await until('three records', () => found.values.length === 3)
    found.consumer.pause([{ topic: name }])
    found.consumer.seek({ topic: name, partition: 0, offset: '1' })
    await sleep(200)
    check(found.values.length === 3, 'paused')
    found.consumer.resume([{ topic: name }])
    await until('two more', () => found.values.length === 5)
    await found.consumer.disconnect()
  },
  'an idempotent producer': async () => {
    const name = await topic()
    await write(name, ['a', 'b'], { idempotent: true, maxInFlightRequests: 1 })
    check((await read(name, 2)).join() === 'a,b', 'values')
  },
  'transactions commit and abort': async () => {
    const name = await topic()
    const options = { transactionalId: `id-${name}`, idempotent: true, maxInFlightRequests: 1 }
    await using(kafka.producer(options), async producer => {
      const aborted = await producer.transaction()
      await aborted.send({ topic: name, messages: [{ value: 'aborted' }] })
      await aborted.abort()
      const committed = await producer.transaction()
      await committed.send({ topic: name, messages: [{ value: 'committed' }] })
      await committed.commit()
    })
    check((await read(name, 1)).join() === 'committed', 'values')
  },
  'offsets in a transaction': async () => {
    const name = await topic()
    await write(name, ['a', 'b'])
    await read(name, 2)
    const consumerGroupId = `group-${name}`
    const options = { transactionalId: `id-${name}`, idempotent: true, maxInFlightRequests: 1 }
    await using(kafka.producer(options), async producer => {
      const transaction = await producer.transaction()
      const topics = [{ topic: name, partitions: [{ partition: 0, offset: '1' }] }]
      await transaction.sendOffsets({ consumerGroupId, topics })
      await transaction.commit()
    })
    // A commit is answered before its markers are written; KafkaJS does not wait for them.
    await until('the offset', async () => {
      const [found] = await admin.fetchOffsets({ groupId: consumerGroupId, topics: [name] })
      return found.partitions[0].offset === '1'
    })
  },
}

await admin.connect()
for (const [name, step] of Object.entries(steps)) {
  try {
    await step()
    console.log(`ok ${name}`)
  } catch (error) {
    const reason = `${error} ${JSON.stringify(error.partitions || '')}`
    console.log(`failed ${name}: ${reason.replaceAll('\n', ' ')}`)
  }
}
await admin.disconnect()
console.log('end')
process.exit(0)

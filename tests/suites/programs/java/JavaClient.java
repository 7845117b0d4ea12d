import java.io.FileReader;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/** Steps of Kafka's own Java client; prints "ok NAME" or "failed NAME: reason" for each. */
public class JavaClient {
    interface Step {
        void run() throws Exception;
    }

    static String bootstrap;
    static final Properties security = new Properties();
    static Admin admin;
    static int names = 0;

    static void step(String name, Step step) {
        try {
            step.run();
            System.out.println("ok " + name);
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            System.out.println("failed " + name + ": " + (cause + "").replace('\n', ' '));
        }
    }

    static void check(boolean holds, Object what) {
        if (!holds) throw new AssertionError(String.valueOf(what));
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    static void waitUntil(String what, BooleanSupplier holds) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!holds.getAsBoolean()) {
            check(System.nanoTime() < end, "not within 20 s: " + what);
            Thread.sleep(20);
        }
    }

    static void refused(Class<? extends Exception> error, Step step) throws Exception {
        try {
            step.run();
        } catch (Exception thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            check(error.isInstance(cause), error + " expected, not " + cause);
            return;
        }
        throw new AssertionError(error + " expected");
    }

    static String topic(int partitions) throws Exception {
        String name = "topic-" + names++;
        get(admin.createTopics(List.of(new NewTopic(name, partitions, (short) 3))).all());
        return name;
    }

    static Properties properties(Object... pairs) {
        Properties properties = new Properties();
        properties.putAll(security);
        properties.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < pairs.length; at += 2) properties.put(pairs[at], pairs[at + 1]);
        return properties;
    }

    static KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(
            properties(pairs), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String group, Object... pairs) {
        Properties properties = properties(pairs);
        properties.putIfAbsent("group.id", group);
        properties.putIfAbsent("auto.offset.reset", "earliest");
        properties.putIfAbsent("enable.auto.commit", "false");
        return new KafkaConsumer<>(
            properties, new StringDeserializer(), new StringDeserializer());
    }

    static ProducerRecord<String, String> record(String topic, String value) {
        return new ProducerRecord<>(topic, 0, "key", value);
    }

    static void write(String topic, int count) throws Exception {
        try (var producer = producer()) {
            for (int at = 0; at < count; at++) producer.send(record(topic, "value-" + at));
            producer.flush();
        }
    }

    static List<String> read(KafkaConsumer<String, String> consumer, int count) throws Exception {
        List<String> values = new ArrayList<>();
        waitUntil(count + " records", () -> {
            consumer.poll(Duration.ofMillis(100)).forEach(found -> values.add(found.value()));
            return values.size() >= count;
        });
        return values;
    }

    static void topics() {
        step("create, list, describe and delete topics", () -> {
            String name = topic(3);
            check(get(admin.listTopics().names()).contains(name), "not listed");
            var described = get(admin.describeTopics(List.of(name)).allTopicNames()).get(name);
            check(described.partitions().size() == 3, described);
            check(described.partitions().get(0).isr().size() == 3, described);
            Uuid id = described.topicId();
            var by = TopicCollection.ofTopicIds(List.of(id));
            check(get(admin.describeTopics(by).allTopicIds()).get(id).name().equals(name), id);
            refused(TopicExistsException.class, () -> get(admin.createTopics(
                List.of(new NewTopic(name, 1, (short) 1))).all()));
            get(admin.deleteTopics(by).all());
            refused(UnknownTopicOrPartitionException.class,
                () -> get(admin.deleteTopics(List.of("never-there")).all()));
        });
        step("create topics, only validated", () -> {
            var options = new CreateTopicsOptions().validateOnly(true);
            get(admin.createTopics(List.of(new NewTopic("checked", 1, (short) 1)), options).all());
            check(!get(admin.listTopics().names()).contains("checked"), "created");
        });
        step("create partitions", () -> {
            String name = topic(1);
            get(admin.createPartitions(Map.of(name, NewPartitions.increaseTo(4))).all());
            waitUntil("four partitions", () -> {
                try {
                    return get(admin.describeTopics(List.of(name)).allTopicNames())
                        .get(name).partitions().size() == 4;
                } catch (Exception error) {
                    return false;
                }
            });
        });
        step("describe and alter configs", () -> {
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(1));
            var entry = new ConfigEntry("retention.ms", "1234");
            var op = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
            get(admin.incrementalAlterConfigs(Map.of(resource, List.of(op))).all());
            waitUntil("retention.ms", () -> {
                try {
                    return get(admin.describeConfigs(List.of(resource)).all()).get(resource)
                        .get("retention.ms").value().equals("1234");
                } catch (Exception error) {
                    return false;
                }
            });
            var broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
            var values = get(admin.describeConfigs(List.of(broker)).all()).get(broker);
            check(values.get("broker.id").value().equals("1"), values.get("broker.id"));
        });
        step("offsets and deleted records", () -> {
            String name = topic(1);
            write(name, 10);
            var partition = new TopicPartition(name, 0);
            var before = RecordsToDelete.beforeOffset(4);
            var deleted = admin.deleteRecords(Map.of(partition, before)).lowWatermarks();
            check(get(deleted.get(partition)).lowWatermark() == 4, "low watermark");
            var latest = admin.listOffsets(Map.of(partition, OffsetSpec.latest()));
            check(get(latest.partitionResult(partition)).offset() == 10, "latest");
            var earliest = admin.listOffsets(Map.of(partition, OffsetSpec.earliest()));
            check(get(earliest.partitionResult(partition)).offset() == 4, "earliest");
            var newest = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp()));
            check(get(newest.partitionResult(partition)).offset() >= 4, "max timestamp");
        });
    }

    static void cluster() {
        step("describe cluster", () -> {
            check(get(admin.describeCluster().nodes()).size() == 3, "nodes");
            check(get(admin.describeCluster().controller()).id() > 0, "controller");
            check(!get(admin.describeCluster().clusterId()).isEmpty(), "cluster id");
        });
        step("elect leaders", () -> {
            var partition = new TopicPartition(topic(1), 0);
            var elected = get(admin.electLeaders(ElectionType.PREFERRED, Set.of(partition))
                .partitions());
            var error = elected.get(partition);
            check(error.isEmpty() || error.get() instanceof ElectionNotNeededException, error);
        });
        step("reassign partitions", () -> {
            var partition = new TopicPartition(topic(1), 0);
            var to = Optional.of(new NewPartitionReassignment(List.of(2, 3)));
            get(admin.alterPartitionReassignments(Map.of(partition, to)).all());
            waitUntil("reassigned", () -> {
                try {
                    return get(admin.listPartitionReassignments().reassignments()).isEmpty()
                        && get(admin.describeTopics(List.of(partition.topic())).allTopicNames())
                            .get(partition.topic()).partitions().get(0).replicas().size() == 2;
                } catch (Exception error) {
                    return false;
                }
            });
        });
        step("describe log dirs", () -> {
            String name = topic(1);
            write(name, 3);
            var dirs = get(admin.describeLogDirs(List.of(1)).allDescriptions()).get(1);
            check(dirs.values().stream().anyMatch(
                dir -> dir.replicaInfos().containsKey(new TopicPartition(name, 0))), dirs);
            var replica = new TopicPartitionReplica(name, 0, 1);
            var info = get(admin.describeReplicaLogDirs(List.of(replica)).all()).get(replica);
            String path = info.getCurrentReplicaLogDir();
            get(admin.alterReplicaLogDirs(Map.of(replica, path)).all());
        });
        step("describe features", () ->
            check(get(admin.describeFeatures().featureMetadata()) != null, "features"));
        step("client quotas", () -> {
            var entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "someone"));
            var op = new ClientQuotaAlteration.Op("producer_byte_rate", 1e6);
            get(admin.alterClientQuotas(
                List.of(new ClientQuotaAlteration(entity, List.of(op)))).all());
            waitUntil("the quota", () -> {
                try {
                    return get(admin.describeClientQuotas(ClientQuotaFilter.all()).entities())
                        .containsKey(entity);
                } catch (Exception error) {
                    return false;
                }
            });
        });
        step("SCRAM credentials", () -> {
            var info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
            get(admin.alterUserScramCredentials(
                List.of(new UserScramCredentialUpsertion("ada", info, "secret"))).all());
            waitUntil("the user", () -> {
                try {
                    return get(admin.describeUserScramCredentials().users()).contains("ada");
                } catch (Exception error) {
                    return false;
                }
            });
        });
        step("no ACLs without an authorizer", () -> refused(SecurityDisabledException.class,
            () -> get(admin.describeAcls(AclBindingFilter.ANY).values())));
        step("no delegation tokens on a plain listener", () -> refused(
            ApiException.class, () -> get(admin.createDelegationToken().delegationToken())));
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (var reader = new FileReader(arguments[1])) {
            security.load(reader);
        }
        admin = Admin.create(properties());
        topics();
        cluster();
        JavaGroups.run();
        JavaTransactions.run();
        admin.close(Duration.ofSeconds(5));
        System.out.println("end");
        System.exit(0);
    }
}

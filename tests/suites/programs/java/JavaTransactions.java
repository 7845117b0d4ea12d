import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.*;

/** Idempotent and transactional producers, and what the admin client says of them. */
public class JavaTransactions extends JavaClient {
    static List<String> committed(String topic, int count) throws Exception {
        try (var consumer = consumer("reader-" + topic, "isolation.level", "read_committed")) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            return read(consumer, count);
        }
    }

    static void producers() {
        step("an idempotent producer", () -> {
            String name = topic(1);
            try (var producer = producer("enable.idempotence", true)) {
                for (int at = 0; at < 100; at++) producer.send(record(name, "value-" + at));
            }
            try (var consumer = consumer("reader-" + name)) {
                consumer.assign(List.of(new TopicPartition(name, 0)));
                check(read(consumer, 100).size() == 100, "records");
            }
        });
        step("transactions commit and abort", () -> {
            String name = topic(1);
            try (var producer = producer("transactional.id", "id-" + name)) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(record(name, "aborted"));
                producer.abortTransaction();
                producer.beginTransaction();
                producer.send(record(name, "committed"));
                producer.commitTransaction();
            }
            check(committed(name, 1).equals(List.of("committed")), "read committed");
        });
        step("a newer producer fences the older", () -> {
            String name = topic(1);
            try (var old = producer("transactional.id", "id-" + name);
                    var young = producer("transactional.id", "id-" + name)) {
                old.initTransactions();
                old.beginTransaction();
                old.send(record(name, "lost"));
                young.initTransactions();
                refused(ProducerFencedException.class, old::commitTransaction);
                young.beginTransaction();
                young.send(record(name, "kept"));
                young.commitTransaction();
            }
            check(committed(name, 1).equals(List.of("kept")), "read committed");
        });
        step("offsets in a transaction", () -> {
            String name = topic(1);
            write(name, 3);
            var partition = new TopicPartition(name, 0);
            String group = "group-" + name;
            try (var producer = producer("transactional.id", "id-" + name);
                    var consumer = consumer(group)) {
                consumer.subscribe(List.of(name));
                read(consumer, 3);
                producer.initTransactions();
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(
                    Map.of(partition, new OffsetAndMetadata(3)), consumer.groupMetadata());
                producer.commitTransaction();
                var offset = consumer.committed(Set.of(partition)).get(partition);
                check(offset.offset() == 3, offset);
            }
        });
    }

    static void administration() {
        step("list, describe and fence transactions", () -> {
            String name = topic(1);
            String id = "id-" + name;
            var partition = new TopicPartition(name, 0);
            try (var producer = producer("transactional.id", id)) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(record(name, "open")).get();
                var listed = get(admin.listTransactions().all());
                check(listed.stream().anyMatch(t -> t.transactionalId().equals(id)), listed);
                var described = get(admin.describeTransactions(List.of(id)).all()).get(id);
                check(described.state() == TransactionState.ONGOING, described);
                check(described.topicPartitions().equals(Set.of(partition)), described);
                var states = get(admin.describeProducers(List.of(partition)).all())
                    .get(partition).activeProducers();
                check(states.size() == 1, states);
                get(admin.fenceProducers(List.of(id)).all());
                refused(KafkaException.class, producer::commitTransaction);
            }
        });
        step("abort a transaction from outside", () -> {
            String name = topic(1);
            var partition = new TopicPartition(name, 0);
            try (var producer = producer("transactional.id", "id-" + name)) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(record(name, "hanging")).get();
                var state = get(admin.describeProducers(List.of(partition)).all())
                    .get(partition).activeProducers().get(0);
                get(admin.abortTransaction(new AbortTransactionSpec(partition,
                    state.producerId(), (short) state.producerEpoch(),
                    state.coordinatorEpoch().orElse(0))).all());
            }
        });
    }

    static void run() {
        producers();
        administration();
    }
}

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;

/** Copies the records of topic "in" to topic "out", exactly once, until it is ended. */
public class JavaCopy extends JavaClient {
    /** Run until a transaction fails; whoever comes next starts at the committed offsets. */
    static void copy() {
        var consumer = consumer("copiers", "isolation.level", "read_committed",
            "session.timeout.ms", 6000, "heartbeat.interval.ms", 500,
            "reconnect.backoff.max.ms", 100);
        var producer = producer("transactional.id", "copy", "reconnect.backoff.max.ms", 100);
        try {
            producer.initTransactions();
            consumer.subscribe(List.of("in"));
            while (true) {
                var records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (var found : records) {
                    producer.send(
                        new ProducerRecord<>("out", found.partition(), null, found.value()));
                    offsets.put(new TopicPartition("in", found.partition()),
                        new OffsetAndMetadata(found.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                System.out.println("committed " + records.count());
            }
        } finally {
            producer.close(Duration.ofSeconds(2));
            consumer.close(Duration.ofSeconds(2));
        }
    }

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        while (true) {
            try {
                copy();
            } catch (KafkaException error) {
                System.out.println("again after " + (error + "").replace('\n', ' '));
            }
        }
    }
}

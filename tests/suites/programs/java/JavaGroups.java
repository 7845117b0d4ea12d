import java.time.Duration;
import java.util.*;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.*;

/** Consumers, their groups and what the admin client says of them. */
public class JavaGroups extends JavaClient {
    /** A member that polls in a thread of its own. */
    static class Member implements AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final List<String> values = new CopyOnWriteArrayList<>();
        volatile Set<TopicPartition> assigned = Set.of();
        volatile boolean stopping = false;
        volatile int generation;
        volatile Exception failure;
        final Thread thread;

        Member(String group, String topic, Object... pairs) {
            consumer = consumer(group, pairs);
            consumer.subscribe(List.of(topic));
            thread = new Thread(this::poll);
            thread.start();
        }

        void poll() {
            try {
                while (!stopping) {
                    for (var found : consumer.poll(Duration.ofMillis(50))) {
                        values.add(found.value());
                    }
                    generation = consumer.groupMetadata().generationId();
                    assigned = Set.copyOf(consumer.assignment());
                }
            } catch (Exception error) {
                failure = error;
            } finally {
                consumer.close(Duration.ofSeconds(5));
            }
        }

        @Override
        public void close() throws Exception {
            stopping = true;
            thread.join(10000);
        }
    }

    static void waitForShares(int partitions, Member... members) throws Exception {
        waitUntil("every partition has one owner", () -> {
            Set<TopicPartition> owned = new HashSet<>();
            int count = 0;
            for (Member member : members) {
                if (member.assigned.isEmpty()) return false;
                owned.addAll(member.assigned);
                count += member.assigned.size();
            }
            return owned.size() == partitions && count == partitions;
        });
    }

    static void consumers() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            step("produce and consume, compression " + codec, () -> {
                String name = topic(1);
                try (var producer = producer("compression.type", codec)) {
                    var sent = record(name, "value");
                    sent.headers().add("header", new byte[] {1});
                    check(producer.send(sent).get().offset() == 0, "offset");
                }
                try (var consumer = consumer("group-" + name)) {
                    consumer.assign(List.of(new TopicPartition(name, 0)));
                    check(read(consumer, 1).equals(List.of("value")), "value");
                }
            });
        }
        step("seek, pause, resume and offsets for times", () -> {
            String name = topic(1);
            write(name, 10);
            var partition = new TopicPartition(name, 0);
            try (var consumer = consumer("group-" + name)) {
                consumer.assign(List.of(partition));
                consumer.seek(partition, 7);
                check(read(consumer, 3).get(0).equals("value-7"), "seek");
                consumer.pause(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                check(consumer.poll(Duration.ofMillis(100)).isEmpty(), "paused");
                consumer.resume(List.of(partition));
                check(read(consumer, 10).size() == 10, "resumed");
                check(consumer.offsetsForTimes(Map.of(partition, 0L)).get(partition).offset() == 0,
                    "offsets for times");
                check(consumer.endOffsets(List.of(partition)).get(partition) == 10, "end");
                check(consumer.partitionsFor(name).size() == 1, "partitions");
                check(consumer.listTopics().containsKey(name), "topics");
            }
        });
        step("commit and resume", () -> {
            String name = topic(1);
            write(name, 5);
            var partition = new TopicPartition(name, 0);
            try (var consumer = consumer("group-" + name)) {
                consumer.subscribe(List.of(name));
                read(consumer, 5);
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3, "noted")));
                var committed = consumer.committed(Set.of(partition)).get(partition);
                check(committed.offset() == 3 && committed.metadata().equals("noted"), committed);
            }
            try (var consumer = consumer("group-" + name)) {
                consumer.subscribe(Pattern.compile(name + ".*"));
                check(read(consumer, 2).get(0).equals("value-3"), "not resumed");
            }
        });
    }

    static void groups() {
        for (String assignor : List.of("RangeAssignor", "RoundRobinAssignor", "StickyAssignor",
                "CooperativeStickyAssignor")) {
            step("members join and leave, " + assignor, () -> {
                String name = topic(6);
                String group = "group-" + name;
                Object[] how = {"partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer." + assignor, "heartbeat.interval.ms", 200};
                try (var first = new Member(group, name, how)) {
                    waitForShares(6, first);
                    try (var second = new Member(group, name, how);
                            var third = new Member(group, name, how)) {
                        waitForShares(6, first, second, third);
                    }
                    waitForShares(6, first);
                    check(first.failure == null, first.failure);
                }
            });
        }
        step("a static member returns without a rebalance", () -> {
            String name = topic(2);
            String group = "group-" + name;
            // A machine that stands still for a session's time removes the member by itself.
            Object[] how = {"group.instance.id", "one", "session.timeout.ms", 45000,
                "heartbeat.interval.ms", 200};
            int generation;
            try (var first = new Member(group, name, how)) {
                waitForShares(2, first);
                generation = first.generation;
            }
            try (var again = new Member(group, name, how)) {
                waitForShares(2, again);
                check(again.generation == generation, "rebalanced");
                try (var rival = new Member(group, name, how)) {
                    waitUntil("the first is fenced",
                        () -> again.failure instanceof FencedInstanceIdException);
                }
            }
            get(admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(
                    List.of(new MemberToRemove("one")))).all());
        });
        step("list, describe and delete groups", () -> {
            String name = topic(2);
            String group = "group-" + name;
            try (var member = new Member(group, name)) {
                waitForShares(2, member);
                var listed = get(admin.listConsumerGroups().all());
                check(listed.stream().anyMatch(g -> g.groupId().equals(group)), listed);
                var described = get(admin.describeConsumerGroups(List.of(group)).all()).get(group);
                check(described.state() == ConsumerGroupState.STABLE, described);
                check(described.members().size() == 1, described);
                refused(GroupNotEmptyException.class,
                    () -> get(admin.deleteConsumerGroups(List.of(group)).all()));
            }
            get(admin.deleteConsumerGroups(List.of(group)).all());
            refused(GroupIdNotFoundException.class,
                () -> get(admin.deleteConsumerGroups(List.of(group)).all()));
        });
        step("a group's offsets, altered and deleted", () -> {
            var partition = new TopicPartition(topic(1), 0);
            String group = "group-" + partition.topic();
            var offsets = Map.of(partition, new OffsetAndMetadata(0));
            get(admin.alterConsumerGroupOffsets(group, offsets).all());
            var found = get(admin.listConsumerGroupOffsets(group)
                .partitionsToOffsetAndMetadata());
            check(found.get(partition).offset() == 0, found);
            get(admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all());
            found = get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
            check(found.get(partition) == null, found);
        });
    }

    static void consumerProtocol() {
        for (String assignor : List.of("uniform", "range")) {
            step("members of the consumer protocol, " + assignor, () -> {
                String name = topic(6);
                String group = "group-" + name;
                write(name, 60);
                Object[] how = {"group.protocol", "consumer", "group.remote.assignor", assignor};
                try (var first = new Member(group, name, how)) {
                    waitForShares(6, first);
                    try (var second = new Member(group, name, how);
                            var third = new Member(group, name, how)) {
                        waitForShares(6, first, second, third);
                        var described = get(admin.describeConsumerGroups(List.of(group)).all())
                            .get(group);
                        check(described.type() == GroupType.CONSUMER, described);
                        check(described.partitionAssignor().equals(assignor), described);
                        check(described.members().size() == 3, described);
                    }
                    waitForShares(6, first);
                    waitUntil("all records are read", () -> first.values.size() >= 20);
                    check(first.failure == null, first.failure);
                }
            });
        }
        step("offsets and a static member of the consumer protocol", () -> {
            String name = topic(1);
            var partition = new TopicPartition(name, 0);
            write(name, 5);
            Object[] how = {"group.protocol", "consumer", "group.instance.id", "one"};
            try (var consumer = consumer("group-" + name, how)) {
                consumer.subscribe(List.of(name));
                read(consumer, 5);
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3, "noted")));
            }
            try (var consumer = consumer("group-" + name, how)) {
                consumer.subscribe(List.of(name));
                check(read(consumer, 2).get(0).equals("value-3"), "not resumed");
            }
        });
        step("a group takes the next member's protocol", () -> {
            String name = topic(2);
            String group = "group-" + name;
            try (var modern = new Member(group, name, "group.protocol", "consumer")) {
                waitForShares(2, modern);
            }
            try (var classic = new Member(group, name)) {
                waitForShares(2, classic);
                check(get(admin.describeConsumerGroups(List.of(group)).all()).get(group).type()
                    == GroupType.CLASSIC, "type");
            }
        });
    }

    static void run() {
        consumers();
        groups();
        consumerProtocol();
    }
}

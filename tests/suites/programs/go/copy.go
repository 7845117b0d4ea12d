// Command copy copies the records of topic "in" to topic "out", exactly once, until it is ended.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// transact copies what one poll finds; an aborted transaction is read and written again.
func transact(session *kgo.GroupTransactSession) error {
	polling, done := context.WithTimeout(context.Background(), 200*time.Millisecond)
	fetches := session.PollFetches(polling)
	done()
	if fetches.NumRecords() == 0 {
		return nil
	}
	if err := session.Begin(); err != nil {
		return err
	}
	var failed kgo.FirstErrPromise
	fetches.EachRecord(func(found *kgo.Record) {
		copied := &kgo.Record{Topic: "out", Partition: found.Partition, Value: found.Value}
		session.Produce(context.Background(), copied, failed.Promise())
	})
	written := failed.Err() == nil
	committed, err := session.End(context.Background(), kgo.TransactionEndTry(written))
	if err == nil {
		fmt.Printf("committed %v %d\n", committed, fetches.NumRecords())
	}
	return err
}

func copyAll(bootstrap []string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap...),
		kgo.TransactionalID("copy"),
		kgo.ConsumerGroup("copiers"),
		kgo.ConsumeTopics("in"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for {
		if err := transact(session); err != nil {
			return err
		}
	}
}

func main() {
	for {
		err := copyAll(strings.Split(os.Args[1], ","))
		fmt.Println("again after", err)
	}
}

// Calls by grpc-go, as run.py says in JSON; prints what became of each.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

type job struct {
	Targets       []string          `json:"targets"`
	ServiceConfig json.RawMessage   `json:"service_config"`
	Metadata      map[string]string `json:"metadata"`
	Calls         int               `json:"calls"`
	DeadlineMs    int               `json:"deadline_ms"`
}

type end struct {
	Code int   `json:"code"`
	Ms   int64 `json:"ms"`
}

// Messages as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string                       { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

func main() {
	var j job
	if err := json.Unmarshal([]byte(os.Args[1]), &j); err != nil {
		panic(err)
	}
	replicas := manual.NewBuilderWithScheme("replicas")
	var addresses []resolver.Address
	for _, target := range j.Targets {
		addresses = append(addresses, resolver.Address{Addr: target})
	}
	replicas.InitialState(resolver.State{Addresses: addresses})
	channel, err := grpc.NewClient("replicas:///all",
		grpc.WithResolvers(replicas),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(string(j.ServiceConfig)))
	if err != nil {
		panic(err)
	}
	channel.Connect()
	for state := channel.GetState(); state != connectivity.Ready; state = channel.GetState() {
		channel.WaitForStateChange(context.Background(), state)
	}
	var ends []end
	for i := 0; i < j.Calls; i++ {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(
			metadata.NewOutgoingContext(context.Background(), metadata.New(j.Metadata)),
			time.Duration(j.DeadlineMs)*time.Millisecond)
		request, response := []byte("\n\x02hi"), []byte{}
		err := channel.Invoke(ctx, "/weir.grpc.testing.Echo/Say", &request, &response,
			grpc.ForceCodec(bytesCodec{}))
		cancel()
		ends = append(ends, end{int(status.Code(err)), time.Since(begun).Milliseconds()})
	}
	out, _ := json.Marshal(ends)
	fmt.Println(string(out))
}

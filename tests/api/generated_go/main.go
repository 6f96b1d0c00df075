// Adds the flight on standard input to the service at the address in the first argument, asks for it
// again, and prints its id and how many legs were found. `client` is what oapi-codegen made.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"checking/client"
)

func main() {
	flight := client.Flight{}
	must(json.NewDecoder(os.Stdin).Decode(&flight))
	service, err := client.NewClientWithResponses(os.Args[1])
	must(err)
	added, err := service.AddTransactionWithResponse(context.Background(), nil, flight)
	must(err)
	number, err := flight.OPCARRIERFLNUM.AsFlightOPCARRIERFLNUM0()
	must(err)
	question := client.FilterTransactionsParams{OPCARRIERFLNUM: int(number), FLDATE: flight.FLDATE}
	legs, err := service.FilterTransactionsWithResponse(context.Background(), &question)
	must(err)
	fmt.Println(*added.JSON202.TRANSACTIONID, legs.JSON200.Count)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Strangers at the peer port of a node: each has a key of its own and claims a height that nobody has reached.
//
//	program CHAIN_ID ID@HOST:PORT COUNT HEIGHT
//
// A stranger that is put out comes again with a new key, until the program is killed. For each there are ten that
// connect and say nothing, to take all places. Each connection that a node
// has taken for a peer, to which it then speaks, is a line on standard output.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/p2p/conn"
	bcproto "github.com/cometbft/cometbft/proto/tendermint/blocksync"
	csproto "github.com/cometbft/cometbft/proto/tendermint/consensus"
	"github.com/cometbft/cometbft/version"
)

const (
	stateChannel, blocksyncChannel = byte(0x20), byte(0x40)
	again                          = 200 * time.Millisecond
)

type liar struct {
	p2p.BaseReactor
	channel byte
	height  int64
}

func (l *liar) GetChannels() []*conn.ChannelDescriptor {
	found := &conn.ChannelDescriptor{ID: l.channel, Priority: 5, SendQueueCapacity: 100, RecvMessageCapacity: 1 << 22}
	if l.channel == stateChannel {
		found.MessageType = &csproto.Message{}
	} else {
		found.MessageType = &bcproto.Message{}
	}
	return []*conn.ChannelDescriptor{found}
}

func (l *liar) AddPeer(peer p2p.Peer) {
	if l.channel == stateChannel {
		peer.Send(p2p.Envelope{ChannelID: l.channel, Message: &csproto.NewRoundStep{Height: l.height, Step: 1}})
	} else {
		peer.Send(p2p.Envelope{ChannelID: l.channel, Message: &bcproto.StatusResponse{Height: l.height, Base: 1}})
	}
}

func (l *liar) Receive(envelope p2p.Envelope) {
	if l.channel == stateChannel {
		fmt.Println("a node speaks to", envelope.Src.NodeInfo().ID())
	}
}

func connect(chain, address string, height int64) *p2p.Switch {
	key := p2p.NodeKey{PrivKey: ed25519.GenPrivKey()}
	info := p2p.DefaultNodeInfo{
		ProtocolVersion: p2p.NewProtocolVersion(version.P2PProtocol, version.BlockProtocol, 0),
		DefaultNodeID:   key.ID(),
		ListenAddr:      "127.0.0.1:1",
		Network:         chain,
		Version:         version.TMCoreSemVer,
		Channels:        []byte{stateChannel, blocksyncChannel},
		Moniker:         "stranger",
		Other:           p2p.DefaultNodeInfoOther{TxIndex: "off"},
	}
	settings := config.DefaultP2PConfig()
	settings.AllowDuplicateIP = true
	transport := p2p.NewMultiplexTransport(info, key, p2p.MConnConfig(settings))
	sw := p2p.NewSwitch(settings, transport)
	sw.SetNodeKey(&key)
	sw.SetNodeInfo(info)
	for _, channel := range []byte{stateChannel, blocksyncChannel} {
		reactor := &liar{channel: channel, height: height}
		reactor.BaseReactor = *p2p.NewBaseReactor("liar", reactor)
		sw.AddReactor(fmt.Sprint(channel), reactor)
	}
	if err := sw.Start(); err != nil {
		panic(err)
	}
	dialled, err := p2p.NewNetAddressString(address)
	if err != nil {
		panic(err)
	}
	_ = sw.DialPeerWithAddress(dialled)
	return sw
}

// sayNothing keeps a connection open as long as the node lets it, and opens the next.
func sayNothing(address string) {
	for {
		silent, err := net.Dial("tcp", address)
		if err == nil {
			_, _ = silent.Read(make([]byte, 1<<16))
			_, _ = silent.Read(make([]byte, 1))
			_ = silent.Close()
		} else {
			time.Sleep(again)
		}
	}
}

func main() {
	chain, address := os.Args[1], os.Args[2]
	count, _ := strconv.Atoi(os.Args[3])
	height, _ := strconv.ParseInt(os.Args[4], 10, 64)
	_, place, _ := strings.Cut(address, "@")
	for range 10 * count {
		go sayNothing(place)
	}
	for range count {
		go func() {
			for {
				sw := connect(chain, address, height)
				time.Sleep(again)
				for sw.Peers().Size() > 0 {
					time.Sleep(again)
				}
				_ = sw.Stop()
			}
		}()
	}
	select {}
}

// Package deps pins modules until the packages that use them are written; it is then deleted.
package deps

import (
	_ "github.com/alicebob/miniredis/v2"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/goccy/go-yaml"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/pelletier/go-toml/v2"
	_ "github.com/pkoukk/tiktoken-go"
	_ "github.com/pkoukk/tiktoken-go-loader"
	_ "github.com/redis/go-redis/v9"
	_ "github.com/sashabaranov/go-openai"
	_ "github.com/valyala/fasthttp"
	_ "go.etcd.io/bbolt"
	_ "go.uber.org/zap"
	_ "pgregory.net/rapid"
)

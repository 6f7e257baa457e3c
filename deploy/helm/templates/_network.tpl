{{- /* The ports of the base URLs that requests and summaries go to, as JSON. A URL that is only known at run time counts
       as https. list VALUES CONFIG, as in what follows. */}}
{{- define "dewpoint.upstreamPorts" -}}
{{- $config := index . 1 }}
{{- $urls := list (dig "upstream" "base_url" "" $config | default "https://api.openai.com/v1") }}
{{- range $config.tenants }}
{{- $urls = append $urls (dig "upstream" "base_url" "" .) }}
{{- end }}
{{- range $config.llms }}
{{- $urls = append $urls .base_url }}
{{- end }}
{{- $ports := list }}
{{- range compact $urls }}
{{- $explicit := regexFind ":[0-9]+(/|$)" . | trimPrefix ":" | trimSuffix "/" }}
{{- $ports = append $ports (int ($explicit | default (ternary 80 443 (hasPrefix "http://" .)))) }}
{{- end }}
{{- $ports | uniq | sortAlpha | toJson }}
{{- end }}

{{- /* The ports of Redis. Behind Sentinels the servers have 6379 as a rule. */}}
{{- define "dewpoint.redisPorts" -}}
{{- $redis := (index . 1).store.redis }}
{{- $ports := list }}
{{- range $redis.addrs }}
{{- $ports = append $ports (include "dewpoint.port" . | int) }}
{{- end }}
{{- with $redis.url }}
{{- $ports = append $ports (regexFind ":[0-9]+(/|$)" . | trimPrefix ":" | trimSuffix "/" | default "6379" | int) }}
{{- end }}
{{- if $redis.master_name }}
{{- $ports = append $ports 6379 }}
{{- end }}
{{- $ports | uniq | sortAlpha | toJson }}
{{- end }}

{{- define "dewpoint.tcpPorts" -}}
{{- range . }}
- protocol: TCP
  port: {{ int . }}
{{- end }}
{{- end }}

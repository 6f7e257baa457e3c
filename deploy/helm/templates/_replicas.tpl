{{- /* How many pods the Deployment asks for; nothing where that is an autoscaler's alone. A number that was the chart's, and that
       it no longer says, becomes 1: so an autoscaler that comes to a running release begins with the pods that there are. Where
       Helm applies server-side, who scales owns the number from then on, and to say it would be a conflict; else it is said. */}}
{{- define "dewpoint.replicas" -}}
{{- if not .Values.autoscaling.enabled }}
{{- if not (kindIs "invalid" .Values.replicaCount) }}{{ .Values.replicaCount }}{{ end }}
{{- else }}
{{- $running := lookup "apps/v1" "Deployment" .Release.Namespace (include "dewpoint.fullname" .) }}
{{- $owners := list }}
{{- range dig "metadata" "managedFields" list $running }}
{{- $owners = concat $owners (list .operation (.subresource | default "")) }}
{{- end }}
{{- if and $running (not (and (has "Apply" $owners) (has "scale" $owners))) }}
{{- $running.spec.replicas }}
{{- end }}
{{- end }}
{{- end }}

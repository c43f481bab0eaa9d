{{- define "kubenexus.fullname" -}}
{{- .Values.fullnameOverride | default (printf "%s-%s" .Release.Name .Chart.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kubenexus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kubenexus.fullname" . }}
{{- end -}}

{{- define "kubenexus.labels" -}}
{{ include "kubenexus.selectorLabels" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/part-of: kubenexus
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kubenexus.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "kubenexus.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kubenexus.fullname" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "kubenexus.lease" -}}
{{- $election := .Values.config.leaderElection | default dict -}}
{{- $election.resourceName | default (include "kubenexus.fullname" .) -}}
{{- end -}}

{{- define "kubenexus.config" -}}
{{- $election := dict "leaderElect" true "resourceNamespace" .Release.Namespace "resourceName" (include "kubenexus.fullname" .) -}}
{{- $given := .Values.config.leaderElection | default dict -}}
{{- toYaml (merge (dict "leaderElection" (merge (deepCopy $given) $election)) .Values.config) -}}
{{- end -}}

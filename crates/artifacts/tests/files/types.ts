export interface Agent {
  id: string;
  children: Agent[];
}

declare module "*?worker&inline" {
  const LayoutWorker: new () => Worker;
  export default LayoutWorker;
}
